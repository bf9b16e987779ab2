/* Includes KERNEL for each float type (REAL, with BITS as the integer of its size) and each target (TARGET). */
#define REAL float
#define BITS int32_t
#define TARGET
#define NAME(name) name##_float_plain
#include KERNEL
#undef TARGET
#undef NAME

#ifdef HAS_AVX2
#define TARGET __attribute__((target("avx2")))
#define NAME(name) name##_float_avx2
#include KERNEL
#undef TARGET
#undef NAME
#endif
#undef REAL
#undef BITS

#define REAL double
#define BITS int64_t
#define TARGET
#define NAME(name) name##_double_plain
#include KERNEL
#undef TARGET
#undef NAME

#ifdef HAS_AVX2
#define TARGET __attribute__((target("avx2")))
#define NAME(name) name##_double_avx2
#include KERNEL
#undef TARGET
#undef NAME
#endif
#undef REAL
#undef BITS
