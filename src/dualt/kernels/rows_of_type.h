/* Rows of REAL, (n, c) and contiguous; BITS is the integer of the same size.

   Non-negative floats are in the order of their bit patterns, and integers are compared without a branch. */
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))
typedef REAL NAME(lanes) __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS NAME(bit_lanes) __attribute__((vector_size(VECTOR_BYTES)));

typedef struct {
  const REAL *floor; /* of each column: an entry above it is a hit */
  REAL low, high;    /* between them is the sum of a row */
} NAME(limits);

TARGET ALWAYS_INLINE BITS NAME(bits_of)(const REAL *entry) {
  BITS bits;
  memcpy(&bits, entry, sizeof bits);
  return bits;
}

/* Write the argmax of a row, the first of equals. Return HIT if an entry is one, and BAD if these are no probabilities:
   something is negative, be it a zero, or the sum is not as it should be. */
TARGET static int NAME(read_one)(const REAL *row, int64_t c, NAME(limits) limits, BITS *place) {
  BITS best = -1, signs = 0, at = 0;
  REAL even = 0, odd = 0;
  int hit = 0;
  int64_t j = 0;
  for (; j + 1 < c; j += 2) { /* in pairs, whose comparisons and sums need not wait for each other */
    BITS a = NAME(bits_of)(row + j), b = NAME(bits_of)(row + j + 1);
    BITS better = b > a ? b : a, which = b > a ? j + 1 : j;
    at = better > best ? which : at;
    best = better > best ? better : best;
    signs |= a | b;
    hit |= (row[j] > limits.floor[j]) | (row[j + 1] > limits.floor[j + 1]);
    even += row[j];
    odd += row[j + 1];
  }
  if (j < c) {
    BITS last = NAME(bits_of)(row + j);
    at = last > best ? j : at;
    signs |= last;
    hit |= row[j] > limits.floor[j];
    even += row[j];
  }
  *place = at;
  int good = signs >= 0 && even + odd >= limits.low && even + odd <= limits.high;
  return (hit ? HIT : 0) | (good ? 0 : BAD);
}

/* Do the same for a long row, two vectors of it at a time, which need not wait for each other. Memory is what takes the time:
   what is a page further on is asked for early, since processors stop at the end of a page. */
TARGET static int NAME(read_long)(const REAL *row, int64_t c, NAME(limits) limits, BITS *place) {
  NAME(bit_lanes) best[2], at[2] = {{0}}, signs = {0}, hit = {0}, number[2];
  NAME(lanes) sums[2] = {{0}};
  int64_t j = 0;
  for (int r = 0; r < LANES; r++) number[0][r] = r, number[1][r] = r + LANES;
  best[0] = best[1] = (NAME(bit_lanes)){0} - 1;
  for (; j + 2 * LANES <= c; j += 2 * LANES) {
    __builtin_prefetch(row + j + PAGE / sizeof(REAL));
    for (int v = 0; v < 2; v++) {
      NAME(lanes) own, floor;
      memcpy(&own, row + j + v * LANES, sizeof own);
      memcpy(&floor, limits.floor + j + v * LANES, sizeof floor);
      NAME(bit_lanes) bits = (NAME(bit_lanes))own, better = bits > best[v];
      at[v] = (better & number[v]) | (~better & at[v]);
      best[v] = (better & bits) | (~better & best[v]);
      signs |= bits;
      hit |= own > floor;
      sums[v] += own;
      number[v] += (BITS)(2 * LANES);
    }
  }
  BITS most = -1, first = 0, any = 0, sign = 0;
  REAL sum = 0;
  NAME(bit_lanes) second = (best[1] > best[0]) | ((best[1] == best[0]) & (at[1] < at[0]));
  at[0] = (second & at[1]) | (~second & at[0]);
  best[0] = (second & best[1]) | (~second & best[0]);
  sums[0] += sums[1];
  for (int r = 0; r < LANES; r++) {
    int better = best[0][r] > most || (best[0][r] == most && at[0][r] < first);
    most = better ? best[0][r] : most;
    first = better ? at[0][r] : first;
    any |= hit[r];
    sign |= signs[r];
    sum += sums[0][r];
  }
  for (; j < c; j++) {
    BITS bits = NAME(bits_of)(row + j);
    first = bits > most ? (BITS)j : first;
    most = bits > most ? bits : most;
    any |= row[j] > limits.floor[j];
    sign |= bits;
    sum += row[j];
  }
  *place = first;
  return (any ? HIT : 0) | (sign >= 0 && sum >= limits.low && sum <= limits.high ? 0 : BAD);
}

/* Do the same for short rows in whole bundles of LANES, and write what was found of each. */
TARGET static void NAME(read_bundles)(const REAL *row, int64_t n, int64_t c, NAME(limits) limits, BITS *place,
                                      BITS *found) {
  for (int64_t i = 0; i < n; i += LANES, row += LANES * c) {
    NAME(bit_lanes) best = (NAME(bit_lanes)){0} - 1, at = {0}, signs = {0}, hit = {0}, number = {0};
    NAME(lanes) sums = {0};
    for (int64_t j = 0; j < c; j++, number = number + 1) {
      NAME(lanes) own;
      __builtin_prefetch(row + LANES * (c + j)); /* the next bundle, a vector of it each time */
      for (int r = 0; r < LANES; r++) own[r] = row[r * c + j];
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
}

/* Write the argmax of rows and what was found of each; return what was found of any. */
TARGET static int NAME(read_group)(const REAL *rows, int64_t n, int64_t c, NAME(limits) limits, BITS *place,
                                   BITS *found) {
  int64_t i = 0;
  int any = 0;
  if (c < LONG_ROW) {
    i = n - n % LANES;
    NAME(read_bundles)(rows, i, c, limits, place, found);
    for (; i < n; i++) found[i] = NAME(read_one)(rows + i * c, c, limits, place + i);
  }
  for (; i < n; i++) found[i] = NAME(read_long)(rows + i * c, c, limits, place + i);
  for (i = 0; i < n; i++) any |= found[i];
  return any;
}

/* Write where the hits of a row are, given where it starts. Return how many they are. Most rows have none, and others few:
   a stretch is searched only if a look without branches finds one. */
TARGET static int64_t NAME(write_hits)(const REAL *row, int64_t c, const REAL *floor, int64_t start, int64_t *hits) {
  int64_t found = 0;
  for (int64_t low = 0; low < c; low += STRETCH) {
    int64_t high = low + STRETCH < c ? low + STRETCH : c;
    int any = 0;
    for (int64_t j = low; j < high; j++) any |= row[j] > floor[j];
    for (int64_t j = low; any && j < high; j++)
      if (row[j] > floor[j]) hits[found++] = start + j;
  }
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
