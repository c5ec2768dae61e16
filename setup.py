"""The build of the native library; everything else is in pyproject.toml.

The library is plain C without Python's headers, so that one wheel per platform serves every version of Python. Without
a C compiler the package is built without the library, and reads with its Python executor.

``python setup.py build_native`` only compiles the library, beside its sources. It needs no setuptools.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

PACKAGES = ("zarrfs", "zarrfs_viewer")
NATIVE = Path("zarrfs", "engine", "native")
BUILD: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parent / NATIVE / "build.py"), run_name="native_build"
)

if __name__ == "__main__" and sys.argv[1:] == ["build_native"]:
    LIBRARY = Path(__file__).resolve().parent / NATIVE / BUILD["LIBRARY_NAME"]
    try:
        BUILD["compile_library"](LIBRARY)
    except BUILD["BuildError"] as error:
        sys.exit(f"setup.py: {error}")
    print(LIBRARY)
    sys.exit()

try:
    from setuptools import setup
    from setuptools.command.bdist_wheel import bdist_wheel
    from setuptools.command.build_py import build_py
except ImportError as error:
    sys.exit(
        f"setup.py: setuptools 77 or newer is required ({error}); use `pip install .` or `python -m build`, which "
        "install it for the build, or `python setup.py build_native` for the native library only"
    )


class BuildWithLibrary(build_py):
    """Copies the modules and compiles the library beside them; for an editable installation in the source directory."""

    def run(self) -> None:
        if not self.editable_mode:
            # build_lib has the files of earlier builds: modules that were deleted meanwhile, and a library of other
            # sources, which a failed compilation would leave there.
            for package in PACKAGES:
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()
        try:
            BUILD["compile_library"](self._library().absolute())
        except BUILD["BuildError"] as error:
            self.warn(f"the native library is not built, and zarrfs reads with Python: {error}")

    def _library(self) -> Path:
        return Path("." if self.editable_mode else self.build_lib) / NATIVE / BUILD["LIBRARY_NAME"]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = super().get_outputs(include_bytecode)
        library = self._library()
        return [*outputs, str(library)] if library.exists() and not self.editable_mode else outputs


class PlatformWheel(bdist_wheel):
    """Names the platform if the wheel contains the library, and never a version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        library = self.get_finalized_command("build_py")._library()
        if not library.exists():
            return super().get_tag()
        return "py3", "none", sysconfig.get_platform().replace("-", "_").replace(".", "_")


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
