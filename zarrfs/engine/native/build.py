"""Compilation of the native library.

The library is plain C without Python's headers. It is loaded with ctypes, so that one build serves every version of
Python. ``setup.py`` compiles it when the package is built or installed; without a compiler the package works
without it. After a change of the C files::

    python zarrfs/engine/native/build.py

This module only uses the standard library, because ``setup.py`` executes it before the package is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LIBRARY_NAME", "BuildError", "compile_library"]

DIRECTORY = Path(__file__).resolve().parent
PACKAGE = DIRECTORY.parents[1]
LIBRARY_NAME = "libzarrfs_native.so"

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu99", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra")


class BuildError(Exception):
    """The library cannot be compiled. The message states the reason."""


def compile_library(target: Path, flags: Sequence[str] = ()) -> None:
    """Compile the C files of this directory to the shared library ``target``, which is replaced atomically.

    The environment variable CC selects the compiler, and ``flags`` are added to its command line. Raises BuildError.
    """
    import shlex
    import subprocess
    import tempfile

    if sys.platform != "linux":
        raise BuildError(f"the native library supports Linux only, not {sys.platform}")
    if sys.byteorder != "little":
        raise BuildError("the native library supports little-endian processors only")
    sources = sorted(str(path) for path in DIRECTORY.glob("*.c"))
    compilers = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else [[name] for name in COMPILERS]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".native-") as scratch:
        output = os.path.join(scratch, target.name)
        for compiler in compilers:
            command = [*compiler, *FLAGS, *flags, "-o", output, *sources]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BuildError(f"{compiler[0]} cannot be executed: {error}") from error
            if done.returncode:
                raise BuildError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
            os.replace(output, target)
            return
    raise BuildError(f"no C compiler was found ({', '.join(compiler[0] for compiler in compilers)})")


if __name__ == "__main__":
    try:
        compile_library(DIRECTORY / LIBRARY_NAME)
    except BuildError as error:
        sys.exit(f"{error}")
    print(DIRECTORY / LIBRARY_NAME)
