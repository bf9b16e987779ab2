/* Rows of REAL, (n, c) and contiguous. A clean posterior q starts uniform, or as it was, and takes EM steps towards
   q @ transition = p:
   q_i *= gain_i, gain_i = sum_j transition_ij p_j / max((q @ transition)_j, LEAST).
   Steps that go on from where q was are to converge: all but the last, third from last and so on cube the gain.

   Rows are worked on in bundles, one to a lane: a product with a matrix of few entries is then a few long vectors for each
   of them, where a single row would need one load for every multiplication. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
#define BUNDLE ((int64_t)(WIDTH * LANES))
#define LEAST ((REAL)(sizeof(REAL) == 4 ? 0x1p-126 : 0x1p-1022)) /* the least normal number */
/* An entry may lie below the background of its row. Where that leaves nothing of the common part, rounding is all there is. */
#define ROUNDED ((REAL)(sizeof(REAL) == 4 ? 0x1p-21 : 0x1p-50))
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

/* p / max(noisy, least) */
TARGET ALWAYS_INLINE void NAME(divide)(const NAME(bundle) * p, const NAME(bundle) * noisy, const NAME(bundle) * least,
                                       NAME(bundle) * ratio) {
  for (int v = 0; v < WIDTH; v++) {
    NAME(bit_lanes) above = noisy->of[v] > least->of[v], bits = (NAME(bit_lanes))noisy->of[v];
    ratio->of[v] = p->of[v] / (NAME(lanes))((bits & above) | ((NAME(bit_lanes))least->of[v] & ~above));
  }
}

/* gain^3, of a gain that is at most MOST_CUBED: q times it then stays finite. */
TARGET ALWAYS_INLINE void NAME(cube)(NAME(bundle) * gain) {
  NAME(bit_lanes) most = (NAME(bit_lanes))((NAME(lanes)){0} + (REAL)MOST_CUBED);
  for (int v = 0; v < WIDTH; v++) {
    NAME(bit_lanes) below = gain->of[v] < (REAL)MOST_CUBED, bits = (NAME(bit_lanes))gain->of[v];
    NAME(lanes) limited = (NAME(lanes))((bits & below) | (most & ~below));
    gain->of[v] = limited * limited * limited;
  }
}

/* Two rows of a whole matrix at a time: their sums read each bundle once, and need not wait for each other. Twice as fast as
   add_entries. */
TARGET ALWAYS_INLINE void NAME(combine_two)(const REAL *first, const REAL *second, int64_t c, const NAME(bundle) * x,
                                            NAME(bundle) * sums) {
  for (int64_t k = 0; k < c; k++)
    for (int v = 0; v < WIDTH; v++) {
      sums[0].of[v] += x[k].of[v] * first[k];
      sums[1].of[v] += x[k].of[v] * second[k];
    }
}

/* Take the steps with every entry and no background: of few classes. */
TARGET static void NAME(take_whole_steps)(const model_t *model, const NAME(bundle) * p, NAME(bundle) * q,
                                          NAME(bundle) * ratio, int64_t goes_on) {
  const REAL *by_label = model->by_label, *by_class = model->by_class, *at_start = model->at_start;
  int64_t c = model->n_classes;
  NAME(bundle) least;
  for (int v = 0; v < WIDTH; v++) least.of[v] = (NAME(lanes)){0} + LEAST;
  for (int64_t step = 0; step < model->steps; step++) {
    for (int64_t j = 0; j < c; j += 2) {
      int64_t second = j + 1 < c ? j + 1 : j;
      NAME(bundle) noisy[2] = {{{{0}}}};
      if (step || goes_on)
        NAME(combine_two)(by_label + j * c, by_label + second * c, c, q, noisy);
      else
        for (int v = 0; v < WIDTH; v++) noisy[0].of[v] += at_start[j], noisy[1].of[v] += at_start[second];
      NAME(divide)(p + j, noisy, &least, ratio + j);
      NAME(divide)(p + second, noisy + 1, &least, ratio + second);
    }
    for (int64_t i = 0; i < c; i += 2) {
      int64_t second = i + 1 < c ? i + 1 : i;
      NAME(bundle) gain[2] = {{{{0}}}};
      NAME(combine_two)(by_class + i * c, by_class + second * c, c, ratio, gain);
      if (goes_on && (model->steps - step) % 2 == 0) NAME(cube)(gain), NAME(cube)(gain + 1);
      for (int v = 0; v < WIDTH; v++) {
        q[i].of[v] *= gain[0].of[v];
        if (second > i) q[second].of[v] *= gain[1].of[v];
      }
    }
  }
}

TARGET static void NAME(take_steps)(const model_t *model, const NAME(bundle) * p, NAME(bundle) * q,
                                    NAME(bundle) * ratio, int64_t goes_on) {
  const REAL *background = model->background, *at_start = model->at_start;
  int64_t c = model->n_classes;
  NAME(bundle) common = {{{0}}}; /* sum_i q_i background_i, of which every label has its part */
  for (int64_t i = 0; goes_on && i < c; i++)
    for (int v = 0; v < WIDTH; v++) common.of[v] += q[i].of[v] * background[i];
  for (int64_t step = 0; step < model->steps; step++) {
    NAME(bundle) ratios = {{{0}}}, next = {{{0}}}, least;
    for (int v = 0; v < WIDTH; v++) least.of[v] = common.of[v] * ROUNDED + LEAST;
    for (int64_t j = 0; j < c; j++) {
      NAME(bundle) noisy = common;
      if (step || goes_on)
        NAME(add_entries)(&model->of_label, j, q, &noisy);
      else
        for (int v = 0; v < WIDTH; v++) noisy.of[v] += at_start[j];
      NAME(divide)(p + j, &noisy, &least, ratio + j);
      for (int v = 0; v < WIDTH; v++) ratios.of[v] += ratio[j].of[v];
    }
    for (int64_t i = 0; i < c; i++) {
      NAME(bundle) gain;
      for (int v = 0; v < WIDTH; v++) gain.of[v] = ratios.of[v] * background[i];
      NAME(add_entries)(&model->of_class, i, ratio, &gain);
      for (int v = 0; v < WIDTH; v++) gain.of[v] = (NAME(lanes))((NAME(bit_lanes))gain.of[v] & (gain.of[v] > 0));
      if (goes_on && (model->steps - step) % 2 == 0) NAME(cube)(&gain);
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
TARGET static void NAME(apply_bayes)(const model_t *model, const NAME(bundle) * q, const int64_t *labels, int64_t n,
                                     NAME(bundle) * weights, int64_t *best, REAL *probability, REAL *right) {
  int64_t c = model->n_classes, known[BUNDLE], likeliest[BUNDLE];
  NAME(bundle) totals = {{{0}}};
  REAL most[BUNDLE], total[BUNDLE];
  for (int64_t r = 0; r < n; r++) known[r] = labels[r] >= 0 && labels[r] < c ? labels[r] : 0;
  NAME(transpose)(model->by_label, known, n, c, weights);
  for (int64_t i = 0; i < c; i++)
    for (int v = 0; v < WIDTH; v++) totals.of[v] += weights[i].of[v] *= q[i].of[v];
  NAME(find_best)(weights, n, c, likeliest, most);
  memcpy(total, &totals, sizeof total);
  for (int64_t r = 0; r < n; r++) {
    right[r] = 0;
    if (labels[r] != known[r] || !(total[r] >= LEAST)) continue;
    best[r] = likeliest[r];
    probability[r] = most[r] / total[r];
    right[r] = ((REAL *)weights)[known[r] * BUNDLE + r] / total[r];
  }
}

#include "likely_of_type.h"
#include "untied_of_type.h"

/* Write what is asked of the rows of these numbers, at most a bundle of them. */
TARGET static void NAME(read_bundle)(const model_t *model, const REAL *probs, const int64_t *numbers, int64_t n,
                                     const output_t *output, NAME(bundle) * scratch) {
  int64_t c = model->n_classes, best[BUNDLE], labels[BUNDLE];
  NAME(bundle) *p = scratch, *q = scratch + c, *ratio = scratch + 2 * c;
  REAL probability[BUNDLE], right[BUNDLE];
  if (n == 0) return;
  NAME(transpose)(probs, numbers, n, c, p);
  if (output->goes_on)
    NAME(transpose)(output->posterior, numbers, n, c, q);
  else
    for (int64_t i = 0; i < c; i++)
      for (int v = 0; v < WIDTH; v++) q[i].of[v] = (NAME(lanes)){0} + (REAL)1 / c;
  if (model->is_whole)
    NAME(take_whole_steps)(model, p, q, ratio, output->goes_on);
  else
    NAME(take_steps)(model, p, q, ratio, output->goes_on);
  if (output->posterior) {
    NAME(transpose_back)(q, numbers, n, c, output->posterior);
    return;
  }
  NAME(find_best)(q, n, c, best, probability);
  for (int64_t r = 0; output->labels && r < n; r++) labels[r] = output->labels[numbers[r]];
  if (output->labels) NAME(apply_bayes)(model, q, labels, n, ratio, best, probability, right);
  for (int64_t r = 0; r < n; r++) {
    if (output->labels) ((REAL *)output->right)[numbers[r]] = right[r];
    output->best[numbers[r]] = best[r];
    ((REAL *)output->best_probability)[numbers[r]] = probability[r];
  }
}

TARGET static int64_t NAME(read_posterior)(const model_t *model, const REAL *probs, int64_t n, const output_t *output) {
  int64_t c = model->n_classes, numbers[BUNDLE], waiting = 0;
  NAME(bundle) *scratch;
  NAME(crowd) crowd;
  NAME(untied) untied;
  memset(&crowd, 0, sizeof crowd);
  memset(&untied, 0, sizeof untied);
  if (posix_memalign((void **)&scratch, VECTOR_BYTES, 3 * c * sizeof *scratch)) return 0;
  for (int64_t number = 0; number < n; number++) {
    if (c >= SEVERAL_CLASSES && model->own && !output->posterior &&
        NAME(join_untied)(model, probs + number * c, number, &untied, output))
      continue;
    if (c >= MANY_CLASSES && !output->posterior && NAME(read_likely)(model, probs, number, &crowd, output)) continue;
    numbers[waiting++] = number;
    if (waiting < BUNDLE) continue;
    NAME(read_bundle)(model, probs, numbers, waiting, output, scratch);
    waiting = 0;
  }
  NAME(read_bundle)(model, probs, numbers, waiting, output, scratch);
  if (crowd.rows) NAME(read_crowd)(model, probs, &crowd, output);
  if (untied.rows) NAME(read_untied)(model, &untied, output);
  free(scratch);
  return 1;
}
#undef LANES
#undef BUNDLE
#undef LEAST
#undef ROUNDED
