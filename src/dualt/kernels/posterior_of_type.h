/* Rows of REAL, (n, c) and contiguous. A clean posterior q starts uniform and takes EM steps towards q @ transition = p:
   q_i *= sum_j transition_ij p_j / max((q @ transition)_j, LEAST).

   Rows are worked on in bundles, one to a lane: a product with a matrix of few entries is then a few long vectors for each
   of them, where a single row would need one load for every multiplication. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
#define BUNDLE ((int64_t)(WIDTH * LANES))
#define LEAST ((REAL)(sizeof(REAL) == 4 ? 0x1p-126 : 0x1p-1022)) /* the least normal number */
typedef REAL NAME(lanes) __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS NAME(bit_lanes) __attribute__((vector_size(VECTOR_BYTES)));
typedef struct {
  NAME(lanes) of[WIDTH];
} NAME(bundle);

/* Write rows of these numbers, at most a bundle of them, as the lanes of columns; lanes without a row are zero. */
TARGET static void NAME(transpose)(const REAL *rows, const int64_t *numbers, int64_t n, int64_t c,
                                   NAME(bundle) * columns) {
  REAL *flat = (REAL *)columns;
  if (n < BUNDLE) memset(columns, 0, c * sizeof *columns);
  for (int64_t low = 0; low < c; low += TILE) {
    int64_t high = low + TILE < c ? low + TILE : c;
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = low; j < high; j++) flat[j * BUNDLE + r] = rows[numbers[r] * c + j];
  }
}

TARGET static void NAME(transpose_back)(const NAME(bundle) * columns, const int64_t *numbers, int64_t n, int64_t c,
                                        REAL *rows) {
  const REAL *flat = (const REAL *)columns;
  for (int64_t low = 0; low < c; low += TILE) {
    int64_t high = low + TILE < c ? low + TILE : c;
    for (int64_t r = 0; r < n; r++)
      for (int64_t j = low; j < high; j++) rows[numbers[r] * c + j] = flat[j * BUNDLE + r];
  }
}

/* sum += the entries of number i times the bundles of what they belong to */
TARGET ALWAYS_INLINE void NAME(add_entries)(const entries_t *entries, int64_t i, const NAME(bundle) * x,
                                            NAME(bundle) * sum) {
  const REAL *value = entries->value;
  for (int64_t e = entries->start[i]; e < entries->start[i + 1]; e++) {
    const NAME(bundle) *other = x + entries->other[e];
    for (int v = 0; v < WIDTH; v++) sum->of[v] += other->of[v] * value[e];
  }
}

/* p / max(noisy, LEAST) */
TARGET ALWAYS_INLINE void NAME(divide)(const NAME(bundle) * p, const NAME(bundle) * noisy, NAME(bundle) * ratio) {
  NAME(bit_lanes) least = (NAME(bit_lanes))((NAME(lanes)){0} + LEAST);
  for (int v = 0; v < WIDTH; v++) {
    NAME(bit_lanes) above = noisy->of[v] > LEAST, bits = (NAME(bit_lanes))noisy->of[v];
    ratio->of[v] = p->of[v] / (NAME(lanes))((bits & above) | (least & ~above));
  }
}

TARGET static void NAME(take_steps)(const model_t *model, const NAME(bundle) * p, NAME(bundle) * q,
                                    NAME(bundle) * ratio) {
  const REAL *background = model->background;
  int64_t c = model->n_classes;
  NAME(bundle) common = {{{0}}}; /* sum_i q_i background_i, of which every label has its part */
  for (int64_t i = 0; i < c; i++)
    for (int v = 0; v < WIDTH; v++) {
      q[i].of[v] = (NAME(lanes)){0} + (REAL)1 / c;
      common.of[v] += q[i].of[v] * background[i];
    }
  for (int64_t step = 0; step < model->steps; step++) {
    NAME(bundle) ratios = {{{0}}}, next = {{{0}}};
    for (int64_t j = 0; j < c; j++) {
      NAME(bundle) noisy = common;
      NAME(add_entries)(&model->of_label, j, q, &noisy);
      NAME(divide)(p + j, &noisy, ratio + j);
      for (int v = 0; v < WIDTH; v++) ratios.of[v] += ratio[j].of[v];
    }
    for (int64_t i = 0; i < c; i++) {
      NAME(bundle) gain;
      for (int v = 0; v < WIDTH; v++) gain.of[v] = ratios.of[v] * background[i];
      NAME(add_entries)(&model->of_class, i, ratio, &gain);
      for (int v = 0; v < WIDTH; v++) {
        q[i].of[v] *= gain.of[v];
        next.of[v] += q[i].of[v] * background[i];
      }
    }
    common = next;
  }
}

/* Write the largest entry of each lane and the class that it belongs to, the first of equals. */
TARGET static void NAME(find_best)(const NAME(bundle) * q, int64_t n, int64_t c, int64_t *best, REAL *probability) {
  NAME(bundle) most = q[0];
  NAME(bit_lanes) at[WIDTH] = {{0}};
  for (int64_t i = 1; i < c; i++)
    for (int v = 0; v < WIDTH; v++) {
      NAME(bit_lanes) more = q[i].of[v] > most.of[v], bits = (NAME(bit_lanes))q[i].of[v];
      most.of[v] = (NAME(lanes))((bits & more) | ((NAME(bit_lanes))most.of[v] & ~more));
      at[v] = ((BITS)i & more) | (at[v] & ~more);
    }
  BITS places[BUNDLE];
  memcpy(places, at, sizeof at);
  memcpy(probability, &most, n * sizeof *probability);
  for (int64_t r = 0; r < n; r++) best[r] = places[r];
}

/* Given the label y of a row, class i has the weight q_i transition_iy, and its share of all weights is its probability.
   Where no class has any, what was found without the label stands, but the label is wrong. */
TARGET static void NAME(apply_bayes)(const model_t *model, const REAL *q, int64_t y, int64_t *best, REAL *probability,
                                     REAL *right) {
  int64_t c = model->n_classes, at = 0, i = 0;
  *right = 0;
  if (y < 0 || y >= c) return;
  const REAL *entry = (const REAL *)model->by_label + y * c;
  NAME(lanes) totals = {0}, mosts = {0};
  REAL total = 0, most = 0;
  for (; i + LANES <= c; i += LANES) {
    NAME(lanes) a, b;
    memcpy(&a, q + i, sizeof a);
    memcpy(&b, entry + i, sizeof b);
    a *= b;
    totals += a;
    NAME(bit_lanes) more = a > mosts;
    mosts = (NAME(lanes))(((NAME(bit_lanes))a & more) | ((NAME(bit_lanes))mosts & ~more));
  }
  for (int r = 0; r < LANES; r++) {
    total += totals[r];
    most = mosts[r] > most ? mosts[r] : most;
  }
  for (; i < c; i++) {
    REAL weight = q[i] * entry[i];
    total += weight;
    most = weight > most ? weight : most;
  }
  if (!(total >= LEAST)) return;
  while (at < c - 1 && q[at] * entry[at] != most) at++;
  *best = at;
  *probability = most / total;
  *right = q[y] * entry[y] / total;
}

#include "likely_of_type.h"

/* Write what is asked of the rows of these numbers, at most a bundle of them. */
TARGET static void NAME(read_bundle)(const model_t *model, const REAL *probs, const int64_t *numbers, int64_t n,
                                     const output_t *output, NAME(bundle) * scratch) {
  int64_t c = model->n_classes, best[BUNDLE], in_order[BUNDLE];
  NAME(bundle) *p = scratch, *q = scratch + c, *ratio = scratch + 2 * c;
  REAL probability[BUNDLE], *rows = (REAL *)ratio, right;
  if (n == 0) return;
  NAME(transpose)(probs, numbers, n, c, p);
  NAME(take_steps)(model, p, q, ratio);
  if (output->posterior) {
    NAME(transpose_back)(q, numbers, n, c, output->posterior);
    return;
  }
  NAME(find_best)(q, n, c, best, probability);
  for (int64_t r = 0; r < n; r++) in_order[r] = r;
  if (output->labels) NAME(transpose_back)(q, in_order, n, c, rows);
  for (int64_t r = 0; r < n; r++) {
    if (output->labels) {
      NAME(apply_bayes)(model, rows + r * c, output->labels[numbers[r]], best + r, probability + r, &right);
      ((REAL *)output->right)[numbers[r]] = right;
    }
    output->best[numbers[r]] = best[r];
    ((REAL *)output->best_probability)[numbers[r]] = probability[r];
  }
}

TARGET static int64_t NAME(read_posterior)(const model_t *model, const REAL *probs, int64_t n, const output_t *output) {
  int64_t c = model->n_classes, numbers[BUNDLE], waiting = 0;
  NAME(bundle) *scratch;
  if (posix_memalign((void **)&scratch, VECTOR_BYTES, 3 * c * sizeof *scratch)) return 0;
  for (int64_t number = 0; number < n; number++) {
    if (c >= MANY_CLASSES && !output->posterior && NAME(read_likely)(model, probs + number * c, number, output)) continue;
    numbers[waiting++] = number;
    if (waiting < BUNDLE) continue;
    NAME(read_bundle)(model, probs, numbers, waiting, output, scratch);
    waiting = 0;
  }
  NAME(read_bundle)(model, probs, numbers, waiting, output, scratch);
  free(scratch);
  return 1;
}
#undef LANES
#undef BUNDLE
#undef LEAST
