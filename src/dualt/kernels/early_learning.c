/* The loss of early-learning regularisation and its gradient; nn/losses/robust.py is its caller and twin. */
#include "vectors.h"

/* For each of k runs, move the targets of n samples towards p, the softmax of their logits, and write the mean of
   -log p_y + weight log r with r = sum_j p_j s_j and s_j = 1 - share target_j, and its gradient. The targets are
   constants, so d r / d z_j = p_j (s_j - r), and the gradient is p_j (1 + weight (s_j / r - 1)) - [j = y].

   Return whether all labels and rows are within the memory of rows_each x c targets; if not, nothing is written. */
EXPORT int64_t early_learning(const float *logits, const int64_t *labels, const int64_t *rows, int64_t k, int64_t n,
                              int64_t c, int64_t rows_each, double weight, double memory, double share, float *targets,
                              float *losses, float *gradient) {
  float scale = 1 / (float)n, pull = (float)weight, kept = (float)memory, part = (float)share;
  for (int64_t i = 0; i < k * n; i++)
    if (labels[i] < 0 || labels[i] >= c || rows[i] < 0 || rows[i] >= rows_each) return 0;
  for (int64_t run = 0; run < k; run++, targets += rows_each * c) {
    double total = 0;
    for (int64_t i = 0; i < n; i++, labels++, rows++, logits += c, gradient += c) {
      float *target = targets + *rows * c, largest = logits[0], sum = 0, rest = 0;
      for (int64_t j = 1; j < c; j++) largest = logits[j] > largest ? logits[j] : largest;
      for (int64_t j = 0; j < c; j++) sum += gradient[j] = expf(logits[j] - largest);
      for (int64_t j = 0; j < c; j++) {
        float p = gradient[j] /= sum;
        target[j] = kept * target[j] + (1 - kept) * p;
        rest += p * (1 - part * target[j]);
      }
      for (int64_t j = 0; j < c; j++)
        gradient[j] *= scale * (1 + pull * ((1 - part * target[j]) / rest - 1));
      gradient[*labels] -= scale;
      total += largest + logf(sum) - logits[*labels] + pull * logf(rest);
    }
    losses[run] = (float)(total / (double)n);
  }
  return 1;
}
