/* The clean posterior of many short rows, too short for a library of linear algebra to be fast. */
#include <stdint.h>

#define MOST_CLASSES 32 /* beyond that it is */
#define WIDTH 4         /* vectors of rows that are worked on together */

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define HAS_LANES 1
#endif

#define REAL float
#define BITS int32_t
#define NAME(name) name##_float
#include "posterior_of_type.h"
#undef REAL
#undef BITS
#undef NAME

#define REAL double
#define BITS int64_t
#define NAME(name) name##_double
#include "posterior_of_type.h"
