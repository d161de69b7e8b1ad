"""The compiler of kernels: decorators, templates, the cache, threads."""
