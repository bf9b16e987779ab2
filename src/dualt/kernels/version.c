/* Which functions with which arguments this library has; `_VERSION` in __init__.py says which are wanted. */
int dualt_kernels_version(void) { return 1; }
