/* Of many classes a row that is fairly sure needs few: those that it could be. It is then worked on by itself, with a small
   matrix between
     - the classes that count by themselves: its probable labels, and what is strongly tied to them by the matrix (classes
       that leave such a label, labels that such a class leaves);
     - the weak ties of the probable labels, as one class;
     - all others, as one class for each of a few ranges of their probability.
   By symmetry that is exact where the members of such a class have the same entries and the same probability. Every row of
   the small matrix sums to one.

   LANES rows take their steps together, one to a lane. It costs half a microsecond for a row of 1,000 classes, against 4 to
   15 for all of them. The probability of the likeliest class differs by some thousandths: see the test. Where more is asked
   of the other classes, all are read: for the whole posterior, and for Bayes' rule with a label that is tied to classes
   which do not count by themselves. */
#include "choice_of_type.h"

/* Rows that take their steps together. What is beyond the places of a row is zero. */
typedef struct {
  NAME(lanes) p[SMALL], q[SMALL], matrix[SMALL][SMALL];
  NAME(choice) of[LANES];
  int64_t rows;
} NAME(crowd);

/* The entry of a class that is tied to no other label, for that of its own, beyond the background; else -1. The matrix is
   then not looked into: its rows are far apart. */
TARGET ALWAYS_INLINE REAL NAME(only_entry)(const model_t *model, int64_t i) {
  int64_t e = model->of_class.start[i];
  int only = model->of_class.start[i + 1] == e + 1 && model->of_class.other[e] == i;
  return only ? ((const REAL *)model->of_class.value)[e] : -1;
}

/* Write the small matrix as one lane of another; every row sums to one. */
TARGET static void NAME(gather)(const model_t *model, const NAME(choice) * choice, NAME(lanes) matrix[][SMALL],
                                int64_t lane) {
  const REAL *transposed = model->by_label, *background = model->background;
  int64_t c = model->n_classes, k = choice->k, n = choice->n, n_ties = choice->n_ties, others = 0;
  REAL mean = model->mean_background, plain[SMALL], row[SMALL], all = 0;
  for (int64_t b = 0; b < n; b++) all += plain[b] = mean * (b < k ? 1 : choice->members[b]);
  for (int64_t b = k + 1; b < n; b++) others += choice->members[b];
  for (int64_t a = 0; a < n; a++) {
    REAL rest = 1 - (all - plain[a]);
    if (a >= k) memcpy(row, plain, sizeof row);
    if (a == k && n_ties > 0)
      for (int64_t b = 0; b < k; b++) {
        const REAL *column = transposed + choice->classes[b] * c;
        for (int64_t t = 0; t < n_ties; t++) row[b] += (column[choice->ties[t]] - mean) / n_ties;
        rest -= row[b] - mean;
      }
    if (a < k) {
      int64_t i = choice->classes[a];
      REAL only = NAME(only_entry)(model, i);
      for (int64_t b = 0; b < k; b++) row[b] = only >= 0 ? background[i] : transposed[choice->classes[b] * c + i];
      row[k] = only >= 0 ? background[i] * n_ties : 0;
      if (only >= 0) row[a] += only;
      for (int64_t t = 0; only < 0 && t < n_ties; t++) row[k] += transposed[choice->ties[t] * c + i];
      rest = 1;
      for (int64_t b = 0; b <= k; b++) rest -= row[b];
    }
    rest = rest > 0 ? rest : 0;
    for (int64_t b = k + 1; a < k && b < n; b++) row[b] = rest * choice->members[b] / others;
    if (a >= k) row[a] = rest;
    for (int64_t b = 0; b < n; b++) ((REAL *)&matrix[a][b])[lane] = row[b];
  }
}

TARGET static void NAME(take_small_steps)(const model_t *model, NAME(crowd) * crowd, int64_t n) {
  NAME(bit_lanes) least = (NAME(bit_lanes))((NAME(lanes)){0} + LEAST);
  NAME(lanes) ratios[SMALL];
  for (int64_t step = 0; step < model->steps; step++) {
    for (int64_t b = 0; b < n; b++) {
      NAME(lanes) noisy = {0};
      for (int64_t a = 0; a < n; a++) noisy += crowd->q[a] * crowd->matrix[a][b];
      NAME(bit_lanes) above = noisy > LEAST;
      ratios[b] = crowd->p[b] / (NAME(lanes))(((NAME(bit_lanes))noisy & above) | (least & ~above));
    }
    for (int64_t a = 0; a < n; a++) {
      NAME(lanes) gain = {0};
      for (int64_t b = 0; b < n; b++) gain += ratios[b] * crowd->matrix[a][b];
      crowd->q[a] *= gain;
    }
  }
}

/* The posterior of a class that does not count by itself: a share of that of its place, as its probability is. */
TARGET static REAL NAME(share_of)(const NAME(choice) * choice, const REAL *row, const REAL *target, const REAL *q,
                                  int64_t i) {
  int64_t at = choice->k;
  if (!NAME(is_among)(choice->ties, choice->n_ties, i)) at += 1 + NAME(range_of)(choice, row[i]);
  if (target[at] > LEAST) return q[at] * (row[i] / target[at]);
  return q[at] / (choice->members[at] > 0 ? choice->members[at] : 1);
}

/* As apply_bayes. */
TARGET static void NAME(apply_small_bayes)(const model_t *model, const NAME(choice) * choice, const REAL *row,
                                           const REAL *target, const REAL *q, int64_t y, int64_t *best,
                                           REAL *probability, REAL *right) {
  int64_t c = model->n_classes, at = 0;
  *right = 0;
  if (y < 0 || y >= c) return;
  const REAL *entry = (const REAL *)model->by_label + y * c, *value = model->of_label.value;
  const REAL *background = model->background;
  REAL total = 0, most = -1, own = 0;
  for (int64_t a = 0; a < choice->k; a++) {
    int64_t i = choice->classes[a];
    REAL only = i == y ? NAME(only_entry)(model, i) : -1;
    REAL weight = q[a] * (only >= 0 ? background[i] + only : entry[i]);
    total += weight;
    if (i == y) own = weight;
    if (weight > most || (weight == most && i < at)) most = weight, at = i;
  }
  for (int64_t a = choice->k; a < choice->n; a++) total += q[a] * (REAL)model->mean_background;
  for (int64_t e = model->of_label.start[y]; e < model->of_label.start[y + 1]; e++)
    if (!NAME(is_among)(choice->classes, choice->k, model->of_label.other[e]))
      total += NAME(share_of)(choice, row, target, q, model->of_label.other[e]) * value[e];
  if (!(total >= LEAST)) return;
  *best = at;
  *probability = most / total;
  *right = own / total;
}

/* Write what is asked of the rows of a crowd, and empty it. */
TARGET static void NAME(read_crowd)(const model_t *model, const REAL *probs, NAME(crowd) * crowd,
                                    const output_t *output) {
  int64_t most_places = 0;
  for (int64_t r = 0; r < crowd->rows; r++) most_places = crowd->of[r].n > most_places ? crowd->of[r].n : most_places;
  NAME(take_small_steps)(model, crowd, most_places);
  for (int64_t r = 0; r < crowd->rows; r++) {
    const NAME(choice) *choice = crowd->of + r;
    REAL target[SMALL], q[SMALL], most = -1, *probability = (REAL *)output->best_probability + choice->number;
    int64_t *best = output->best + choice->number, at = 0;
    for (int64_t a = 0; a < choice->n; a++) target[a] = crowd->p[a][r], q[a] = crowd->q[a][r];
    for (int64_t a = 0; a < choice->k; a++)
      if (q[a] > most || (q[a] == most && choice->classes[a] < at)) most = q[a], at = choice->classes[a];
    *best = at;
    *probability = most;
    if (output->labels)
      NAME(apply_small_bayes)(model, choice, probs + choice->number * model->n_classes, target, q,
                              output->labels[choice->number], best, probability, (REAL *)output->right + choice->number);
  }
  memset(crowd->p, 0, sizeof crowd->p + sizeof crowd->q + sizeof crowd->matrix);
  crowd->rows = 0;
}

/* Let a row join the crowd, which is read once it is full; return whether its likely classes are enough for it. */
TARGET static int NAME(read_likely)(const model_t *model, const REAL *probs, int64_t number, NAME(crowd) * crowd,
                                    const output_t *output) {
  int64_t c = model->n_classes, r = crowd->rows;
  const REAL *row = probs + number * c;
  NAME(choice) *choice = crowd->of + r;
  REAL target[SMALL], sum;
  if (!NAME(choose)(model, row, output->labels ? output->labels[number] : -1, choice, &sum)) return 0;
  choice->number = number;
  NAME(take_probabilities)(row, c, sum, choice, target);
  NAME(gather)(model, choice, crowd->matrix, r);
  for (int64_t a = 0; a < choice->n; a++) {
    crowd->p[a][r] = target[a];
    crowd->q[a][r] = (REAL)(a < choice->k ? 1 : choice->members[a]) / c;
  }
  if (++crowd->rows == LANES) NAME(read_crowd)(model, probs, crowd, output);
  return 1;
}
