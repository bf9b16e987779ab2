/* Of many classes a row that is fairly sure needs few: those that it could be. It is then worked on by itself, with a small
   matrix between
     - the classes that count by themselves: its probable labels, and what is strongly tied to them by the matrix (classes
       that leave such a label, labels that such a class leaves);
     - the weak ties of the probable labels, as one class;
     - all others, as one class for each of a few ranges of their probability.
   By symmetry that is exact where the members of such a class have the same entries and the same probability. Every row of
   the small matrix sums to one.

   It costs 1.1 microseconds for a row of 1,000 classes, against 4 to 15 for all of them. The probability of the likeliest
   class differs by some thousandths: see the test. Where more is asked of the other classes, all are read: for the whole
   posterior, and for Bayes' rule with a label that is tied to classes which do not count by themselves. */
typedef struct {
  int32_t classes[SMALL]; /* that count by themselves, */
  int64_t k;              /* and how many they are */
  int32_t ties[MOST_TIES];
  int64_t n_ties;
  int64_t members[SMALL]; /* of the places k ... n - 1: the weak ties, and the ranges of the others */
  REAL low[RANGES];       /* where a range starts */
  int64_t n;
} NAME(choice);

TARGET static int NAME(is_among)(const int32_t *list, int64_t n, int64_t wanted) {
  int found = 0;
  for (int64_t a = 0; a < n; a++) found |= list[a] == wanted;
  return found;
}

/* Add what the entries of a class or label tie it to, by itself if that is strong. Return whether there is room. */
TARGET static int NAME(add_ties)(const entries_t *entries, int64_t number, NAME(choice) * choice) {
  const REAL *value = entries->value;
  for (int64_t e = entries->start[number]; e < entries->start[number + 1]; e++) {
    int32_t other = entries->other[e];
    if (value[e] >= (REAL)STRONG) {
      if (NAME(is_among)(choice->classes, choice->k, other)) continue;
      if (choice->k == MOST_CHOSEN) return 0;
      choice->classes[choice->k++] = other;
    } else if (!NAME(is_among)(choice->ties, choice->n_ties, other)) {
      if (choice->n_ties == MOST_TIES) return 0;
      choice->ties[choice->n_ties++] = other;
    }
  }
  return 1;
}

/* Whether an entry ties a class to another label, or the label to another class. */
TARGET static int NAME(has_ties)(const model_t *model, int64_t number) {
  const entries_t *both[] = {&model->of_class, &model->of_label};
  for (int side = 0; side < 2; side++)
    for (int64_t e = both[side]->start[number]; e < both[side]->start[number + 1]; e++)
      if (both[side]->other[e] != number) return 1;
  return 0;
}

/* Write which labels are probable, and the sum of the row; return how many they are, or none if they find no room. */
TARGET static int64_t NAME(probable_labels)(const REAL *row, int64_t c, int32_t *labels, REAL *sum) {
  NAME(lanes) sums = {0};
  int64_t k = 0, j = 0;
  *sum = 0;
  for (; j + LANES <= c; j += LANES) {
    NAME(lanes) part;
    memcpy(&part, row + j, sizeof part);
    sums += part;
    NAME(bit_lanes) any = part >= (REAL)PROBABLE;
    uint64_t words[VECTOR_BYTES / 8];
    memcpy(words, &any, sizeof any);
    if (!(words[0] | words[1] | words[2] | words[3])) continue;
    for (int64_t i = j; i < j + LANES; i++) {
      if (row[i] < (REAL)PROBABLE) continue;
      if (k == MOST_PROBABLE) return 0;
      labels[k++] = i;
    }
  }
  for (int r = 0; r < LANES; r++) *sum += sums[r];
  for (; j < c; j++) {
    *sum += row[j];
    if (row[j] < (REAL)PROBABLE) continue;
    if (k == MOST_PROBABLE) return 0;
    labels[k++] = j;
  }
  return k;
}

/* Choose the classes of a row; return whether it is sure enough for that, and they find room. */
TARGET static int NAME(choose)(const model_t *model, const REAL *row, int64_t label, NAME(choice) * choice, REAL *sum) {
  int64_t c = model->n_classes, n_probable = NAME(probable_labels)(row, c, choice->classes, sum);
  REAL probable = 0;
  choice->k = n_probable;
  choice->n_ties = 0;
  for (int64_t a = 0; a < n_probable; a++) probable += row[choice->classes[a]];
  if (probable < (REAL)SURE) return 0;
  for (int64_t a = 0; a < n_probable; a++)
    if (!NAME(add_ties)(&model->of_class, choice->classes[a], choice) ||
        !NAME(add_ties)(&model->of_label, choice->classes[a], choice))
      return 0;
  if (label >= 0 && label < c && !NAME(is_among)(choice->classes, choice->k, label)) {
    if (choice->k == MOST_CHOSEN || NAME(has_ties)(model, label)) return 0;
    choice->classes[choice->k++] = label;
  }
  int64_t kept = 0; /* of the weak ties, those that are not among the chosen by another tie */
  for (int64_t a = 0; a < choice->n_ties; a++)
    if (!NAME(is_among)(choice->classes, choice->k, choice->ties[a])) choice->ties[kept++] = choice->ties[a];
  choice->n_ties = kept;
  return 1;
}

/* Which range a probability belongs to. */
TARGET ALWAYS_INLINE int NAME(range_of)(const NAME(choice) * choice, REAL p) {
  int range = 0;
  for (int b = 1; b < RANGES; b++) range += p >= choice->low[b];
  return range;
}

/* Write the probabilities of all places of the small matrix, and how many members they have. */
TARGET static void NAME(take_probabilities)(const REAL *row, int64_t c, REAL sum, NAME(choice) * choice, REAL *p) {
  NAME(lanes) above[RANGES] = {{0}};
  NAME(bit_lanes) counts[RANGES] = {{0}};
  int64_t k = choice->k, j = 0, count[RANGES + 1] = {0};
  REAL total[RANGES + 1] = {0}, tied = 0, left = sum;
  for (int64_t a = 0; a < k; a++) left -= p[a] = row[choice->classes[a]];
  for (int64_t a = 0; a < choice->n_ties; a++) tied += row[choice->ties[a]];
  left = left > tied ? left - tied : 0;
  choice->low[0] = 0;
  for (int b = 1; b < RANGES; b++) choice->low[b] = left / c * (REAL)(b == 1 ? 0.5 : b == 2 ? 1.0 : 2.0);
  for (; j + LANES <= c; j += LANES) {
    NAME(lanes) part;
    memcpy(&part, row + j, sizeof part);
    for (int b = 1; b < RANGES; b++) {
      NAME(bit_lanes) in = part >= choice->low[b];
      above[b] += (NAME(lanes))((NAME(bit_lanes))part & in);
      counts[b] -= in;
    }
  }
  for (int b = 1; b < RANGES; b++)
    for (int r = 0; r < LANES; r++) {
      total[b] += above[b][r];
      count[b] += counts[b][r];
    }
  for (; j < c; j++)
    for (int b = 1; b < RANGES; b++)
      if (row[j] >= choice->low[b]) total[b] += row[j], count[b]++;
  total[0] = sum, count[0] = c;
  for (int b = 0; b < RANGES; b++) total[b] -= total[b + 1], count[b] -= count[b + 1];
  for (int64_t a = 0; a < k + choice->n_ties; a++) {
    REAL own = row[a < k ? choice->classes[a] : choice->ties[a - k]];
    int range = NAME(range_of)(choice, own);
    total[range] -= own, count[range]--;
  }
  choice->n = k;
  p[choice->n] = tied;
  choice->members[choice->n++] = choice->n_ties;
  for (int b = 0; b < RANGES; b++) {
    p[choice->n] = total[b] > 0 && count[b] > 0 ? total[b] : 0;
    choice->members[choice->n++] = count[b];
  }
}

/* Write the small matrix, by class and by label; every row sums to one. */
TARGET static void NAME(gather)(const model_t *model, const NAME(choice) * choice, REAL by_class[][SMALL],
                                REAL by_label[][SMALL]) {
  const REAL *transposed = model->by_label;
  int64_t c = model->n_classes, k = choice->k, n = choice->n, n_ties = choice->n_ties, others = 0;
  REAL mean = model->mean_background;
  memset(by_label, 0, n * sizeof by_label[0]);
  for (int64_t b = k + 1; b < n; b++) others += choice->members[b];
  for (int64_t a = 0; a < n; a++) {
    REAL *row = by_class[a], rest = 1;
    memset(row, 0, sizeof by_class[0]);
    for (int64_t b = 0; b < k; b++) {
      const REAL *column = transposed + choice->classes[b] * c;
      row[b] = a < k ? column[choice->classes[a]] : mean;
      for (int64_t t = 0; a == k && t < n_ties; t++) row[b] += (column[choice->ties[t]] - mean) / n_ties;
      rest -= row[b];
    }
    for (int64_t t = 0; a < k && t < n_ties; t++) row[k] += transposed[choice->ties[t] * c + choice->classes[a]];
    if (a >= k) row[k] = mean * n_ties;
    for (int64_t b = k + 1; a >= k && b < n; b++) row[b] = mean * choice->members[b];
    if (a >= k) row[a] = 0;
    for (int64_t b = k; b < n; b++) rest -= row[b];
    rest = rest > 0 ? rest : 0;
    for (int64_t b = k + 1; a < k && b < n; b++) row[b] = rest * choice->members[b] / others;
    if (a >= k) row[a] = rest;
    for (int64_t b = 0; b < n; b++) by_label[b][a] = row[b];
  }
}

/* sum_a x_a rows_a, a vector of it, in two sums that need not wait for each other */
TARGET ALWAYS_INLINE void NAME(combine)(const REAL *x, REAL rows[][SMALL], int64_t n, int64_t start,
                                        NAME(lanes) * sum) {
  NAME(lanes) even = {0}, odd = {0}, row;
  int64_t a = 0;
  for (; a + 1 < n; a += 2) {
    memcpy(&row, rows[a] + start, sizeof row);
    even += row * x[a];
    memcpy(&row, rows[a + 1] + start, sizeof row);
    odd += row * x[a + 1];
  }
  if (a < n) {
    memcpy(&row, rows[a] + start, sizeof row);
    even += row * x[a];
  }
  *sum = even + odd;
}

TARGET static void NAME(take_small_steps)(const model_t *model, const NAME(choice) * choice, const REAL *target,
                                          REAL *q) {
  REAL by_class[SMALL][SMALL], by_label[SMALL][SMALL], ratios[SMALL];
  int64_t n = choice->n;
  NAME(gather)(model, choice, by_class, by_label);
  for (int64_t a = 0; a < n; a++) q[a] = (REAL)(a < choice->k ? 1 : choice->members[a]) / model->n_classes;
  for (int64_t step = 0; step < model->steps; step++) {
    for (int64_t start = 0; start < n; start += LANES) {
      NAME(lanes) noisy, p;
      NAME(combine)(q, by_class, n, start, &noisy);
      memcpy(&p, target + start, sizeof p);
      NAME(bit_lanes) above = noisy > LEAST, least = (NAME(bit_lanes))((NAME(lanes)){0} + LEAST);
      p /= (NAME(lanes))(((NAME(bit_lanes))noisy & above) | (least & ~above));
      memcpy(ratios + start, &p, sizeof p);
    }
    for (int64_t start = 0; start < n; start += LANES) {
      NAME(lanes) gain, now;
      NAME(combine)(ratios, by_label, n, start, &gain);
      memcpy(&now, q + start, sizeof now);
      now *= gain;
      memcpy(q + start, &now, sizeof now);
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
  REAL total = 0, most = -1, own = 0;
  for (int64_t a = 0; a < choice->k; a++) {
    int64_t i = choice->classes[a];
    REAL weight = q[a] * entry[i];
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

/* Write what is asked of a row; return whether its likely classes were enough for that. */
TARGET static int NAME(read_likely)(const model_t *model, const REAL *row, int64_t number, const output_t *output) {
  NAME(choice) choice;
  REAL target[SMALL] = {0}, q[SMALL] = {0}, sum;
  int64_t c = model->n_classes, label = output->labels ? output->labels[number] : -1;
  if (!NAME(choose)(model, row, label, &choice, &sum)) return 0;
  NAME(take_probabilities)(row, c, sum, &choice, target);
  NAME(take_small_steps)(model, &choice, target, q);
  int64_t *best = output->best + number, at = 0;
  REAL *probability = (REAL *)output->best_probability + number, most = -1;
  for (int64_t a = 0; a < choice.k; a++)
    if (q[a] > most || (q[a] == most && choice.classes[a] < at)) most = q[a], at = choice.classes[a];
  *best = at;
  *probability = most;
  if (output->labels)
    NAME(apply_small_bayes)(model, &choice, row, target, q, label, best, probability, (REAL *)output->right + number);
  return 1;
}
