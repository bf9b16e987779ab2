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
#include <cpuid.h>
#define HAS_AVX2 1
#define BEST(name, ...) (has_avx2() ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))

/* Whether the processor has AVX2 and the system keeps its registers. As __builtin_cpu_supports, which needs a runtime library
   that not every toolchain links. Asked once: in a virtual machine the instruction is slow. */
static inline int has_avx2(void) {
  static int known; /* 0: not yet, 1: no, 2: yes */
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!answer) {
    unsigned a, b, c, d, low = 0, high;
    int saved = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE);
    if (saved) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    answer = 1 + ((low & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2));
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer == 2;
}
#else
#define BEST(name, ...) name##_plain(__VA_ARGS__)
#endif
