/* Rows of REAL, (n, c) and contiguous; BITS is the integer of the same size. */
#ifdef HAS_LANES
typedef REAL NAME(lanes) __attribute__((vector_size(32)));
typedef BITS NAME(bit_lanes) __attribute__((vector_size(32)));
enum { NAME(LANES) = 32 / sizeof(REAL), NAME(BUNDLE) = WIDTH * NAME(LANES) };

/* p / max(noisy, least) */
__attribute__((target("avx2"))) static inline NAME(lanes) NAME(ratio_of)(NAME(lanes) p, NAME(lanes) noisy, REAL least) {
  NAME(bit_lanes) above = noisy > least, floor = (NAME(bit_lanes))((NAME(lanes)){0} + least);
  return p / (NAME(lanes))(((NAME(bit_lanes))noisy & above) | (floor & ~above));
}

/* Take EM steps for a bundle of rows, as columns: several vectors of them, whose sums need not wait for each other. */
__attribute__((target("avx2"))) static void NAME(take_steps)(const REAL *probs, int64_t n, int64_t c,
                                                             const REAL *transition, int64_t steps, REAL least,
                                                             REAL *posterior) {
  NAME(lanes) p[MOST_CLASSES][WIDTH], q[MOST_CLASSES][WIDTH], ratio[MOST_CLASSES][WIDTH];
  for (int64_t j = 0; j < c; j++) {
    for (int64_t r = 0; r < NAME(BUNDLE); r++) ((REAL *)p[j])[r] = r < n ? probs[r * c + j] : 0;
    for (int v = 0; v < WIDTH; v++) q[j][v] = (NAME(lanes)){0} + (REAL)1 / c;
  }
  for (int64_t step = 0; step < steps; step++) {
    for (int64_t j = 0; j < c; j++) {
      NAME(lanes) sum[WIDTH];
      for (int v = 0; v < WIDTH; v++) sum[v] = q[0][v] * transition[j];
      for (int64_t i = 1; i < c; i++)
        for (int v = 0; v < WIDTH; v++) sum[v] += q[i][v] * transition[i * c + j];
      for (int v = 0; v < WIDTH; v++) ratio[j][v] = NAME(ratio_of)(p[j][v], sum[v], least);
    }
    for (int64_t i = 0; i < c; i++) {
      NAME(lanes) sum[WIDTH];
      for (int v = 0; v < WIDTH; v++) sum[v] = ratio[0][v] * transition[i * c];
      for (int64_t j = 1; j < c; j++)
        for (int v = 0; v < WIDTH; v++) sum[v] += ratio[j][v] * transition[i * c + j];
      for (int v = 0; v < WIDTH; v++) q[i][v] *= sum[v];
    }
  }
  for (int64_t j = 0; j < c; j++)
    for (int64_t r = 0; r < n; r++) posterior[r * c + j] = ((REAL *)q[j])[r];
}
#endif

/* Write the posterior q of every row p after EM steps from the uniform distribution towards q @ transition = p:
   q_i *= sum_j transition_ij p_j / max((q @ transition)_j, least). Return whether it was done: not for many classes, nor on a
   machine that does not take eight numbers at a time. */
int64_t NAME(early_posterior)(const REAL *probs, int64_t n, int64_t c, const REAL *transition, int64_t steps,
                              double least, REAL *posterior) {
#ifdef HAS_LANES
  if (c > MOST_CLASSES || !__builtin_cpu_supports("avx2")) return 0;
  for (int64_t first = 0; first < n; first += NAME(BUNDLE)) {
    int64_t size = n - first < NAME(BUNDLE) ? n - first : NAME(BUNDLE);
    NAME(take_steps)(probs + first * c, size, c, transition, steps, least, posterior + first * c);
  }
  return 1;
#else
  return 0;
#endif
}
