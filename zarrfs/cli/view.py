"""``zarrfs view``: open the desktop viewer."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click

from zarrfs.errors import UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["command"]


@click.command()
@click.argument("locations", nargs=-1)
def command(locations: tuple[str, ...]) -> None:
    """Open the desktop viewer with LOCATIONS, as `zarrfs-viewer` does.

    The viewer needs the packages of the extra "viewer".

    \b
    Examples:
      zarrfs view
      zarrfs view image.ome.zarr survey.zarr.zip
    """
    if find_spec("zarrfs_viewer") is None or find_spec("PyQt6") is None:
        raise UnsupportedError(f"the viewer is not installed; install it with: {install_hint('viewer')}")
    import_module("zarrfs_viewer.main").run(list(locations))
