/* Rows of REAL, (n, c) and contiguous; BITS is the integer of the same size.

   Non-negative floats are in the order of their bit patterns, and integers are compared without a branch. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
typedef REAL NAME(lanes) __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS NAME(bit_lanes) __attribute__((vector_size(VECTOR_BYTES)));

typedef struct {
  const REAL *floor; /* of each column: an entry above it is a hit */
  REAL low, high;    /* between them is the sum of a row */
} NAME(limits);

/* Write the argmax of each row, the first of equals, and what was found of it: HIT if an entry is one, and BAD if these are no
   probabilities: something is negative, be it a zero, or the sum is not as it should be. Return what was found of any.

   LANES rows are read side by side, one to a lane; of the last few, the last one stands in for those that are not there, in
   room that is there for whole vectors. */
TARGET static int NAME(read_group)(const REAL *rows, int64_t n, int64_t c, NAME(limits) limits, BITS *place,
                                   BITS *found) {
  int any = 0;
  for (int64_t i = 0; i < n; i += LANES) {
    NAME(bit_lanes) best = (NAME(bit_lanes)){0} - 1, at = {0}, signs = {0}, hit = {0}, number = {0};
    NAME(lanes) sums = {0};
    const REAL *row[LANES];
    for (int r = 0; r < LANES; r++) row[r] = rows + (i + r < n ? i + r : n - 1) * c;
    for (int64_t j = 0; j < c; j++, number = number + 1) {
      NAME(lanes) own;
      __builtin_prefetch(row[0] + LANES * (c + j)); /* the next rows, a vector of them each time */
      for (int r = 0; r < LANES; r++) own[r] = row[r][j];
      NAME(bit_lanes) bits = (NAME(bit_lanes))own, better = bits > best;
      at = (better & number) | (~better & at);
      best = (better & bits) | (~better & best);
      signs |= bits;
      hit |= own > limits.floor[j];
      sums += own;
    }
    hit = (hit & HIT) | (~((signs >= 0) & (sums >= limits.low) & (sums <= limits.high)) & BAD);
    memcpy(place + i, &at, sizeof at);
    memcpy(found + i, &hit, sizeof hit);
  }
  for (int64_t i = 0; i < n; i++) any |= found[i];
  return any;
}

/* Write where the hits of a row are, given where it starts. Return how many they are. */
TARGET static int64_t NAME(write_hits)(const REAL *row, int64_t c, const REAL *floor, int64_t start, int64_t *hits) {
  int64_t found = 0;
  for (int64_t j = 0; j < c; j++)
    if (row[j] > floor[j]) hits[found++] = start + j;
  return found;
}

/* Add every row to counts[argmax, label], and its entry of the label, in multiples of 1 / units, to sums[label]. Write
   where, in all of the rows, the hits are. Return how many rows were read: all, or as many as come before a group that has
   a bad row or a label that is no class, or whose hits may not find room. */
TARGET static int64_t NAME(scan_rows)(const REAL *rows, const int64_t *labels, int64_t n, int64_t c, double tolerance,
                                      double units, const REAL *floor, int64_t *counts, int64_t *sums, int64_t *hits,
                                      int64_t room, int64_t *n_hits) {
  NAME(limits) limits = {floor, 1 - tolerance, 1 + tolerance};
  int64_t label[GROUP], first = 0;
  BITS place[GROUP], found[GROUP];
  *n_hits = 0;
  for (; first < n; first += GROUP) {
    const REAL *group = rows + first * c;
    int64_t size = n - first < GROUP ? n - first : GROUP;
    if (*n_hits + size * c > room) break;
    int any = NAME(read_group)(group, size, c, limits, place, found);
    /* A copy, since labels in a file that somebody writes to could change after their check. */
    memcpy(label, labels + first, size * sizeof *label);
    for (int64_t i = 0; i < size; i++) any |= label[i] >= 0 && label[i] < c ? 0 : BAD;
    if (any & BAD) break;
    for (int64_t i = 0; i < size; i++) {
      counts[place[i] * c + label[i]]++;
      sums[label[i]] += llrint(group[i * c + label[i]] * units);
    }
    for (int64_t i = 0; any & HIT && i < size; i++)
      if (found[i] & HIT) *n_hits += NAME(write_hits)(group + i * c, c, floor, (first + i) * c, hits + *n_hits);
  }
  return first < n ? first : n;
}

#undef LANES
