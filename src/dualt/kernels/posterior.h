/* What the clean posterior of rows is computed from, and what is written of it. Pointers to REAL are void, so that Python
   describes one structure for both float types. */

/* Entries of a matrix by row, or by column: those of number i are from start[i] to start[i + 1]. */
typedef struct {
  const int64_t *start;
  const int32_t *other; /* the column, or the row, of each */
  const void *value;
} entries_t;

/* The matrix is background_i plus the entries that differ from it. */
typedef struct {
  int64_t n_classes, steps, is_whole; /* whether every entry is kept, and so none is listed */
  const void *background;
  const void *at_start; /* (c,) the labels of a posterior that is uniform, which need not be computed for every row */
  const void *own; /* (c,), or none: the entry of a class for its own label beyond the background, -1 if it has ties */
  entries_t of_class, of_label;
  const void *by_class, *by_label; /* (c, c) the whole matrix, and transposed */
  double mean_background;
} model_t;

typedef struct {
  void *posterior;       /* (n, c), or none, and then */
  int64_t *best;         /* (n,) the most probable class */
  void *best_probability;
  const int64_t *labels; /* (n,), or none: given labels, which Bayes' rule takes into account */
  void *right;           /* (n,) the probability of the label itself */
  int64_t goes_on;       /* whether the steps start from what `posterior` holds, and are to converge */
} output_t;
