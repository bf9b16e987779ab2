/* The clean posterior of rows, and what is asked of it; see posterior_of_type.h. The twin in NumPy is in transition.py. */
#include "vectors.h"

#include "posterior.h"

#define WIDTH 4 /* vectors of rows that are worked on together, so that their sums need not wait for each other */
#define TILE 16 /* columns that are transposed together */
#define MOST_CUBED 0x1p20 /* as in posterior.py */

/* See untied_of_type.h and likely_of_type.h. */
#define SEVERAL_CLASSES 64
#define MANY_CLASSES 256
#define SURE 0.4      /* together the probable labels of a row that is read by its likely classes, */
#define PROBABLE 0.01 /* and each of them */
#define STRONG 0.05   /* entries, beyond the background, that tie a class to a label */
/* A row that needs more is read by all classes: so are all where a matrix ties everything to everything. */
enum { MOST_PROBABLE = 8, MOST_CHOSEN = 12, MOST_TIES = 64, MOST_UNTIED = 13 };
enum { RANGES = 4, SMALL = MOST_CHOSEN + 1 + RANGES };

#define KERNEL "posterior_of_type.h"
#include "each_type.h"

/* Return whether there was memory for it. */
EXPORT int64_t read_posterior_float(const model_t *model, const float *probs, int64_t n, const output_t *output) {
  return BEST(read_posterior_float, model, probs, n, output);
}

EXPORT int64_t read_posterior_double(const model_t *model, const double *probs, int64_t n, const output_t *output) {
  return BEST(read_posterior_double, model, probs, n, output);
}
