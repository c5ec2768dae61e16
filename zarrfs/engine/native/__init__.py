"""Reading of local chunks by a small C library, where it is available: see ``library.py`` and ``native.h``."""
