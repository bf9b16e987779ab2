/* Mean losses of a batch together with their gradients, in closed form.

   logits are (n, c), labels (n,), matrices (c, c), all contiguous. Each function returns 0, or 1 where it does not know the
   answer: no rows, a label that is no class, or no memory. What it has written is then without meaning. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* e^x for -87 <= x <= 0, to 3e-7 of itself: 2^k · e^r with |r| <= log(2) / 2. The compiler makes vectors of this, and
   none of expf. */
static inline float exp_of(float x) {
  const float shift = 0x1.8p23f; /* adding it leaves the nearest integer in the lowest bits */
  x = x < -87 ? -87 : x;         /* e^-87 is nearly the smallest normal float; NaN stays NaN */
  float shifted = x * 0x1.715476p0f + shift, k = shifted - shift;
  float r = x - k * 0x1.62e4p-1f - k * 0x1.7f7d1cp-20f;
  float series = 1 + r * (1 + r * (1.f / 2 + r * (1.f / 6 + r * (1.f / 24 + r * (1.f / 120 + r * (1.f / 720))))));
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000;
  float power;
  memcpy(&power, &bits, sizeof power);
  return power * series;
}

/* The largest entry and the sum of a row: in lanes, which need not wait for each other. */
enum { LANES = 8 };

static float largest(const float *row, int64_t c) {
  float lanes[LANES], top = row[0];
  int64_t j = 0;
  for (int k = 0; k < LANES; k++) lanes[k] = top;
  for (; j + LANES <= c; j += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] = row[j + k] > lanes[k] ? row[j + k] : lanes[k];
  for (; j < c; j++) top = row[j] > top ? row[j] : top;
  for (int k = 0; k < LANES; k++) top = lanes[k] > top ? lanes[k] : top;
  return top;
}

static float sum_of(const float *row, int64_t c) {
  float lanes[LANES] = {0}, sum = 0;
  int64_t j = 0;
  for (; j + LANES <= c; j += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] += row[j + k];
  for (; j < c; j++) sum += row[j];
  for (int k = 0; k < LANES; k++) sum += lanes[k];
  return sum;
}

/* Write e^(row - top), perhaps over the row itself, and return the sum. */
static float exponentials(const float *row, int64_t c, float top, float *out) {
  for (int64_t j = 0; j < c; j++) out[j] = exp_of(row[j] - top);
  return sum_of(out, c);
}

static void scale(float *row, int64_t c, float factor) {
  for (int64_t j = 0; j < c; j++) row[j] *= factor;
}

/* The mean of weight · cross entropy, the weight P(true y | x, given y) / T_yy held constant.

   Row y of `columns` is log T_iy over i. */
int64_t mean_reweighted_loss(const float *logits, const int64_t *labels, int64_t n, int64_t c, const float *columns,
                             double max_weight, float *loss, float *gradient) {
  double total = 0;
  for (int64_t i = 0; i < n; i++, logits += c, gradient += c) {
    int64_t y = labels[i];
    if (y < 0 || y >= c) return 1;
    const float *column = columns + y * c;
    for (int64_t j = 0; j < c; j++) gradient[j] = logits[j] + column[j];
    float sum = exponentials(gradient, c, largest(gradient, c), gradient);
    double weight = exp(-column[y]) * (gradient[y] / sum);
    weight = (weight > max_weight ? max_weight : weight) / n;

    float top = largest(logits, c);
    sum = exponentials(logits, c, top, gradient);
    total += weight * (log(sum) + top - logits[y]);
    float own = gradient[y] / sum;
    scale(gradient, c, weight / sum);
    gradient[y] = weight * (own - 1);
  }
  *loss = total;
  return n == 0;
}

static const float TINY = 1e-30f; /* divisors are no smaller */

/* Write the rows of max(transition + slack, 0) over their sums; where nothing is left of one, that of transition. */
static void revise(const float *transition, const float *slack, int64_t c, float *revised, float *sums) {
  for (int64_t i = 0; i < c; i++, transition += c, slack += c, revised += c) {
    for (int64_t j = 0; j < c; j++) {
      float total = transition[j] + slack[j];
      revised[j] = total < 0 ? 0 : total;
    }
    sums[i] = sum_of(revised, c);
    float divisor = sums[i] < TINY ? TINY : sums[i];
    for (int64_t j = 0; j < c; j++) revised[j] = sums[i] > 0 ? revised[j] / divisor : transition[j];
  }
}

/* Turn slopes by the rows of `revised`, in place, into slopes by the slack: g becomes (g - g · row) / sum. */
static void pass_on(const float *transition, const float *slack, int64_t c, float *revised, const float *sums,
                    float *slopes) {
  for (int64_t i = 0; i < c; i++, transition += c, slack += c, revised += c, slopes += c) {
    float divisor = sums[i] < TINY ? TINY : sums[i];
    for (int64_t j = 0; j < c; j++) revised[j] *= slopes[j];
    float inner = sums[i] < TINY ? 0 : sum_of(revised, c);
    for (int64_t j = 0; j < c; j++) {
      float slope = sums[i] > 0 ? slopes[j] - inner : 0;
      slopes[j] = transition[j] + slack[j] < 0 ? 0 : slope / divisor;
    }
  }
}

/* The mean of weight · cross entropy, the weight p_y / s with s = (p @ revised)_y.

   With r_i = p_i revised_iy / s: d weight / dz = weight (1_y - r), d weight / d revised_iy = -weight p_i / s. */
int64_t mean_revised_loss(const float *logits, const int64_t *labels, int64_t n, int64_t c, const float *transition,
                          const float *slack, float *loss, float *by_logits, float *by_slack) {
  float *revised = malloc((c + 2) * c * sizeof *revised);
  if (revised == NULL) return 1;
  float *sums = revised + c * c, *joint = sums + c;
  revise(transition, slack, c, revised, sums);
  memset(by_slack, 0, c * c * sizeof *by_slack);

  double total = 0;
  int64_t i = 0;
  for (; i < n; i++, logits += c, by_logits += c) {
    int64_t y = labels[i];
    if (y < 0 || y >= c) break;
    float top = largest(logits, c), sum = exponentials(logits, c, top, by_logits);
    scale(by_logits, c, 1 / sum);
    double entropy = log(sum) + top - logits[y]; /* -log p_y */
    for (int64_t j = 0; j < c; j++) joint[j] = by_logits[j] * revised[j * c + y];
    float given = sum_of(joint, c);
    int bounded = given < TINY; /* then it is a constant */
    given = bounded ? TINY : given;
    float weight = exp(-entropy) / given / n, product = weight * entropy;
    total += product;

    float by_given = bounded ? 0 : product / given, by_probs = weight - (bounded ? product : 0);
    for (int64_t j = 0; j < c; j++) by_slack[j * c + y] -= by_given * by_logits[j];
    for (int64_t j = 0; j < c; j++) by_logits[j] = by_probs * by_logits[j] - by_given * joint[j];
    by_logits[y] += product - weight;
  }
  *loss = total;
  pass_on(transition, slack, c, revised, sums, by_slack);
  free(revised);
  return n == 0 || i < n;
}
