/* What the one pass over probabilities does with every row; see rows_of_type.h, and rows/summary.py for its twin in NumPy. */
#include "vectors.h"

#define GROUP 64 /* rows that are dealt with together, while they are in the fastest cache: whole vectors of them */

enum { HIT = 1, BAD = 2 };

#define KERNEL "rows_of_type.h"
#include "each_type.h"

/* See scan_rows in rows_of_type.h. */
#define SCAN_ROWS(REAL, type)                                                                                        \
  EXPORT int64_t scan_rows_##type(const REAL *rows, const int64_t *labels, int64_t n, int64_t c, double tolerance,  \
                                  double units, const REAL *floor, int64_t *counts, int64_t *sums, int64_t *hits,   \
                                  int64_t room, int64_t *n_hits) {                                                  \
    return BEST(scan_rows_##type, rows, labels, n, c, tolerance, units, floor, counts, sums, hits, room, n_hits);   \
  }

SCAN_ROWS(float, float)
SCAN_ROWS(double, double)
