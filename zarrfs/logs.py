"""The one logger of the package, so that a program can direct or silence all of it by the name ``zarrfs``."""

import logging

__all__ = ["logger"]

logger = logging.getLogger("zarrfs")
