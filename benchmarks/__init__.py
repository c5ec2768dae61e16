"""Benchmarks that compare zarrfs with other implementations. See ``python -m benchmarks --help``."""
