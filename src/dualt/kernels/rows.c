/* What the one pass over probabilities does with every row; see rows_of_type.h, and rows/scan.py for its twin. */
#include "vectors.h"

#define GROUP 64   /* rows that are dealt with together, while they are in the fastest cache */
#define LONG_ROW 64 /* entries from which a row is read by itself, not side by side with others */
#define PAGE 4096  /* bytes */
#define STRETCH 64 /* entries of a row that are looked at together */

enum { HIT = 1, BAD = 2 };

#define KERNEL "rows_of_type.h"
#include "each_type.h"

/* See scan_rows and find_largest in rows_of_type.h. */
#define SCAN_ROWS(REAL, type)                                                                                        \
  EXPORT int64_t scan_rows_##type(const REAL *rows, const int64_t *labels, int64_t n, int64_t c, double tolerance,  \
                                  double units, const REAL *floor, int64_t *counts, int64_t *sums, int64_t *hits,   \
                                  int64_t room, int64_t *n_hits) {                                                  \
    return BEST(scan_rows_##type, rows, labels, n, c, tolerance, units, floor, counts, sums, hits, room, n_hits);   \
  }                                                                                                                 \
  EXPORT void largest_entries_##type(const REAL *rows, int64_t n, int64_t c, const REAL *floor,                     \
                                     const int64_t *skipped, int64_t *place) {                                      \
    BEST(largest_entries_##type, rows, n, c, floor, skipped, place);                                                \
  }

SCAN_ROWS(float, float)
SCAN_ROWS(double, double)

/* The hash of a row number in rows/sample.py, given the lower half of it and the product of the upper. */
static inline uint32_t hash_of(uint32_t low, uint32_t high) {
  uint32_t mixed = low ^ high;
  mixed ^= mixed >> 16;
  mixed *= 0x85EBCA6Bu;
  mixed ^= mixed >> 13;
  mixed *= 0xC2B2AE35u;
  return mixed ^ mixed >> 16;
}

/* Write those of the row numbers start ... start + n - 1 whose hash is at most the ceiling; return how many they are.
   A group is looked at without a branch first: most have none. */
EXPORT int64_t sampled_rows(int64_t start, int64_t n, uint32_t ceiling, int64_t *kept) {
  int64_t found = 0;
  for (int64_t number = start; number < start + n;) {
    uint32_t low = (uint32_t)number, high = (uint32_t)(number >> 32) * 0x9E3779B1u;
    if (number % GROUP == 0 && number + GROUP <= start + n) {
      int any = 0;
      for (uint32_t k = 0; k < GROUP; k++) any |= hash_of(low + k, high) <= ceiling;
      if (!any) {
        number += GROUP;
        continue;
      }
    }
    kept[found] = number++; /* without a branch, which nobody could predict */
    found += hash_of(low, high) <= ceiling;
  }
  return found;
}

/* Turn the bits of n halves into floats: shifted into place they are those of a float that is too small by 2^112. Return
   whether all are plain, from 0 to 2: a sign, an infinity or NaN comes out as a large number. */
EXPORT int64_t floats_of_halves(const uint16_t *halves, int64_t n, float *floats) {
  int plain = 1;
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)halves[i] << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    floats[i] = value * 0x1p112f;
    plain &= halves[i] <= 0x4000;
  }
  return plain;
}
