"""The program of the bundle: the viewer, or a module that the viewer starts in another process.

In a bundle ``sys.executable`` is this program. zarrfs starts its other processes with ``sys.executable -m MODULE``, as
with an interpreter, so this form runs the module. Only modules of zarrfs are started in this way.
"""

from __future__ import annotations

import multiprocessing
import runpy
import sys

MODULES = ("zarrfs", "zarrfs_viewer")


def main() -> None:
    """Run the viewer with the arguments of the process, or the module that they name."""
    multiprocessing.freeze_support()
    if sys.argv[1:2] == ["-m"] and sys.argv[2:] and sys.argv[2].partition(".")[0] in MODULES:
        module = sys.argv[2]
        sys.argv = [sys.argv[0], *sys.argv[3:]]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    from zarrfs_viewer.main import run

    run()


if __name__ == "__main__":
    main()
