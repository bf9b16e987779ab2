/* The clean posterior of rows, and what is asked of it; see posterior_of_type.h. The twin in NumPy is in transition.py. */
#include "vectors.h"

#include "posterior.h"

#define WIDTH 4 /* vectors of rows that are worked on together, so that their sums need not wait for each other */
#define TILE 16 /* columns that are transposed together */

#define KERNEL "posterior_of_type.h"
#include "each_type.h"

/* Return whether there was memory for it. */
EXPORT int64_t read_posterior_float(const model_t *model, const float *probs, int64_t n, const output_t *output) {
  return BEST(read_posterior_float, model, probs, n, output);
}

EXPORT int64_t read_posterior_double(const model_t *model, const double *probs, int64_t n, const output_t *output) {
  return BEST(read_posterior_double, model, probs, n, output);
}
