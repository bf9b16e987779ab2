/* Vectors by the compiler's extensions, which become AVX2, SSE or NEON; no intrinsic of any machine is used. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Nothing of this library is seen from outside but what says so. */
#pragma GCC visibility push(hidden)
#define EXPORT __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define VECTOR_BYTES 32

/* Functions are compiled for every machine ("plain") and, on x86-64, once more for those with AVX2. Results are the same:
   vectors have one width everywhere, and products are not fused with sums. */
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 1
#define BEST(name, ...) (__builtin_cpu_supports("avx2") ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))
#else
#define BEST(name, ...) name##_plain(__VA_ARGS__)
#endif
