/* Which functions with which arguments this library has; `_VERSION` in __init__.py says which are wanted. */
#include "vectors.h"

EXPORT int dualt_kernels_version(void) { return 10; }
