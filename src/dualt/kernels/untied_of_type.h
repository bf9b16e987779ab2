/* Of many classes a row needs few: those that it could be. Where the matrix ties none of its probable labels to another class,
   an entry is the background of its row, and on the diagonal what a class leaves for itself as well: the products of a step
   are then sums over the places of
     - the probable labels, and the given one;
     - all others, as one place for each of a few ranges of their probability, with as many members.
   By symmetry that is exact where the members of a place have the same probability and background. The probability of the
   likeliest class differs by some thousandths: see the test.

   LANES rows take their steps together, one to a lane. Of 100 classes that takes half as long as with all of them, of 1,000
   classes a third. Rows with ties are read as in likely_of_type.h. */
#define PLACES (RANGES + MOST_UNTIED)
#define COUNTED 24 /* vectors whose hits fit the bits of a lane */

/* What is beyond the places of a row is zero in p and has no members. */
typedef struct {
  NAME(lanes) p[PLACES], members[PLACES], q[PLACES], background[PLACES], own[PLACES], entry[PLACES];
  NAME(bit_lanes) class[PLACES];
  int64_t number[LANES], rows, n;
} NAME(untied);

/* A vector of the first n numbers, with -1 for those that are not there. */
TARGET ALWAYS_INLINE NAME(lanes) NAME(load)(const REAL *from, int64_t n) {
  NAME(lanes) part = (NAME(lanes)){0} - 1;
  if (n >= LANES)
    memcpy(&part, from, sizeof part);
  else
    for (int64_t i = 0; i < n; i++) part[i] = from[i];
  return part;
}

/* Write the probable labels of a row, and sum and number of what reaches each bound; return how many labels there are, or -1
   if that is too many. */
TARGET ALWAYS_INLINE int64_t NAME(count_probable)(const REAL *row, int64_t c, const REAL *bounds, int32_t *labels,
                                                  REAL *sums, int64_t *numbers) {
  NAME(lanes) above[RANGES];
  NAME(bit_lanes) counts[RANGES];
  int64_t k = 0;
  for (int b = 0; b < RANGES; b++) above[b] = (NAME(lanes)){0}, counts[b] = (NAME(bit_lanes)){0};
  for (int64_t low = 0; low < c; low += COUNTED * LANES) {
    int64_t high = low + COUNTED * LANES < c ? low + COUNTED * LANES : c;
    NAME(bit_lanes) hits = {0}, bit = {0};
    bit += 1;
    for (int64_t j = low; j < high; j += LANES, bit += bit) {
      NAME(lanes) part = NAME(load)(row + j, c - j);
      for (int b = 0; b < RANGES; b++) {
        NAME(bit_lanes) in = part >= bounds[b];
        above[b] += (NAME(lanes))((NAME(bit_lanes))part & in);
        counts[b] -= in;
      }
      hits |= bit & (part >= bounds[RANGES]);
    }
    for (int r = 0; r < LANES; r++)
      for (BITS left = hits[r]; left; left &= left - 1) {
        if (k == MOST_UNTIED - 1) return -1;
        labels[k++] = low + __builtin_ctzll(left) * LANES + r;
      }
  }
  for (int b = 0; b < RANGES; b++) {
    sums[b] = 0, numbers[b] = 0;
    for (int r = 0; r < LANES; r++) sums[b] += above[b][r], numbers[b] += counts[b][r];
  }
  return k;
}

TARGET static void NAME(take_untied_steps)(const model_t *model, NAME(untied) * crowd) {
  int64_t n = crowd->n;
  NAME(lanes) ratios[PLACES], common = {0};
  for (int64_t a = 0; a < n; a++) {
    crowd->q[a] = crowd->members[a] / (REAL)model->n_classes;
    common += crowd->q[a] * crowd->background[a];
  }
  for (int64_t step = 0; step < model->steps; step++) {
    NAME(lanes) sum = {0}, next = {0};
    for (int64_t b = 0; b < n; b++) {
      NAME(lanes) noisy = crowd->members[b] * common + crowd->q[b] * crowd->own[b];
      ratios[b] = crowd->p[b] / (noisy + LEAST);
      sum += crowd->members[b] * ratios[b];
    }
    for (int64_t a = 0; a < n; a++) {
      crowd->q[a] *= crowd->background[a] * sum + crowd->own[a] * ratios[a];
      next += crowd->q[a] * crowd->background[a];
    }
    common = next;
  }
}

/* The largest of the values of the likely classes, and its class, the first of equals. */
TARGET ALWAYS_INLINE NAME(bit_lanes) NAME(find_likeliest)(const NAME(untied) * crowd, const NAME(lanes) * values,
                                                          NAME(lanes) * most) {
  NAME(bit_lanes) at = crowd->class[RANGES];
  *most = values[RANGES];
  for (int64_t a = RANGES + 1; a < crowd->n; a++) {
    NAME(bit_lanes) more = (values[a] > *most) | ((values[a] == *most) & (crowd->class[a] < at));
    *most = (NAME(lanes))(((NAME(bit_lanes))values[a] & more) | ((NAME(bit_lanes)) * most & ~more));
    at = (crowd->class[a] & more) | (at & ~more);
  }
  return at;
}

/* Write what is asked of the rows of a crowd, and empty it. */
TARGET static void NAME(read_untied)(const model_t *model, NAME(untied) * crowd, const output_t *output) {
  NAME(lanes) most, likeliest = {0}, total = {0}, *weights = crowd->p; /* which is not needed any more */
  NAME(take_untied_steps)(model, crowd);
  NAME(bit_lanes) at = NAME(find_likeliest)(crowd, crowd->q, &most), given = {0};
  if (output->labels) { /* as apply_bayes */
    for (int64_t a = 0; a < crowd->n; a++) total += weights[a] = crowd->q[a] * crowd->entry[a];
    given = NAME(find_likeliest)(crowd, weights, &likeliest);
  }
  for (int64_t r = 0; r < crowd->rows; r++) {
    int64_t number = crowd->number[r];
    int is_known = output->labels && total[r] >= LEAST;
    output->best[number] = is_known ? given[r] : at[r];
    ((REAL *)output->best_probability)[number] = is_known ? likeliest[r] / total[r] : most[r];
    if (!output->labels) continue;
    REAL right = 0;
    for (int64_t a = RANGES; a < crowd->n; a++)
      if (crowd->class[a][r] == output->labels[number]) right += weights[a][r];
    ((REAL *)output->right)[number] = is_known ? right / total[r] : 0;
  }
  memset(crowd, 0, sizeof crowd->p + sizeof crowd->members);
  crowd->rows = crowd->n = 0;
}

/* Let a row join the crowd, which is read once it is full; return whether its likely classes are enough for it. */
TARGET static int NAME(join_untied)(const model_t *model, const REAL *row, int64_t number, NAME(untied) * crowd,
                                    const output_t *output) {
  const REAL *background = model->background, *own = model->own, *entry = model->by_label;
  int64_t c = model->n_classes, y = output->labels ? output->labels[number] : -1, numbers[RANGES], r = crowd->rows;
  REAL sums[RANGES], mean = model->mean_background, even = (REAL)1 / c;
  REAL least = 2 * even > (REAL)PROBABLE ? 2 * even : (REAL)PROBABLE;
  REAL bounds[RANGES + 1] = {0, even / 4, even / 2, even, least};
  int32_t labels[MOST_UNTIED];
  int64_t k = NAME(count_probable)(row, c, bounds, labels, sums, numbers), is_chosen = y < 0 || y >= c;
  if (k <= 0) return 0;
  for (int64_t a = 0; a < k; a++) {
    if (own[labels[a]] < 0) return 0;
    is_chosen |= labels[a] == y;
  }
  if (!is_chosen) {
    if (own[y] < 0) return 0;
    labels[k++] = y;
  }
  for (int b = 0; b + 1 < RANGES; b++) sums[b] -= sums[b + 1], numbers[b] -= numbers[b + 1];
  for (int64_t a = 0; a < k; a++) {
    int64_t i = labels[a], at = RANGES + a, range = 0;
    for (int b = 1; b < RANGES; b++) range += row[i] >= bounds[b];
    sums[range] -= row[i], numbers[range]--;
    crowd->p[at][r] = row[i];
    crowd->members[at][r] = 1;
    crowd->background[at][r] = background[i];
    crowd->own[at][r] = own[i];
    crowd->class[at][r] = i;
    crowd->entry[at][r] = y < 0 || y >= c ? 0 : entry[y * c + i];
  }
  for (int b = 0; b < RANGES; b++) {
    crowd->p[b][r] = sums[b] > 0 && numbers[b] > 0 ? sums[b] : 0;
    crowd->members[b][r] = numbers[b];
    crowd->background[b][r] = mean;
    crowd->own[b][r] = 1 - mean * c;
    crowd->entry[b][r] = y < 0 || y >= c ? 0 : mean;
  }
  crowd->number[r] = number;
  if (RANGES + k > crowd->n) crowd->n = RANGES + k;
  if (++crowd->rows == LANES) NAME(read_untied)(model, crowd, output);
  return 1;
}
#undef PLACES
#undef COUNTED
