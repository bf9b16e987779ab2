/* Which classes of a row count by themselves, and what the others amount to; see likely_of_type.h. */
typedef struct {
  int64_t number;         /* of the row */
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

/* Write which labels are probable, and the sum of the row; return how many they are, or none if they find no room. Four
   vectors at a time, which are searched only if one of them has such a label: most have none. */
TARGET static int64_t NAME(probable_labels)(const REAL *row, int64_t c, int32_t *labels, REAL *sum) {
  NAME(lanes) sums[4] = {{0}};
  int64_t k = 0, j = 0;
  for (; j < c; j += 4 * LANES) {
    int64_t high = j + 4 * LANES < c ? j + 4 * LANES : c;
    if (high == j + 4 * LANES) {
      NAME(bit_lanes) any = {0};
      uint64_t words[VECTOR_BYTES / 8];
      for (int v = 0; v < 4; v++) {
        NAME(lanes) part;
        memcpy(&part, row + j + v * LANES, sizeof part);
        sums[v] += part;
        any |= part >= (REAL)PROBABLE;
      }
      memcpy(words, &any, sizeof any);
      if (!(words[0] | words[1] | words[2] | words[3])) continue;
    } else {
      for (int64_t i = j; i < c; i++) sums[0][0] += row[i];
    }
    for (int64_t i = j; i < high; i++) {
      if (row[i] < (REAL)PROBABLE) continue;
      if (k == MOST_PROBABLE) return 0;
      labels[k++] = i;
    }
  }
  sums[0] += sums[1], sums[2] += sums[3], sums[0] += sums[2];
  *sum = 0;
  for (int r = 0; r < LANES; r++) *sum += sums[0][r];
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
  for (int64_t ahead = 0; ahead < c; ahead += 64 / sizeof(REAL)) __builtin_prefetch(row + c + ahead); /* the next row */
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
