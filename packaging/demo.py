"""What zarrfs does, shown in a minute: a Zarr store is mounted, and NumPy maps one of its arrays as a plain
file.

Run by ``demo.sh``, which sets everything up first. Without an argument the store is a microscopy stack of
cells that is made up on the spot; with one it is yours, which is only read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

import zarrfs
from zarrfs import synthetic

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build" / "demo"
BIN = Path(sys.executable).parent

MAX_COMPARED = 512 << 20
"""Bytes compared between the mount and the engine; of larger arrays it is this much, spread over the
whole."""

SHADES = " .:-=+*#%@"
"""Characters from dark to bright."""

console = Console(highlight=False, soft_wrap=True)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: packaging/demo.sh [STORE]", file=sys.stderr)
        return 2
    console.print("[bold]zarrfs[/bold]: Zarr arrays as ordinary files\n")
    try:
        store = arguments[0] if arguments else make_store()
        with mounted(store) as mountpoint:
            show_files(mountpoint)
            same = compare(store, mountpoint)
        show_picture(store)
    except zarrfs.ZarrError as error:
        console.print(f"\n[red]The demo cannot go on:[/red] {error}")
        return 1
    if not same:
        return 1
    console.print(f"\nThat was all. Now yours:  {BIN / 'zarrfs'} mount STORE MOUNTPOINT")
    return 0


def make_store() -> str:
    """Write the made-up stack with our own engine, and return where it is."""
    location = SCRATCH / "cells.ome.zarr"
    location.parent.mkdir(parents=True, exist_ok=True)
    say("Imagine some cells: 3 channels of 40 planes with 512 x 512 pixels, and a label for each nucleus.")
    start = time.perf_counter()
    picture = synthetic.make_picture((40, 512, 512))
    imagined = time.perf_counter()
    synthetic.write_image(str(location), picture, chunks=(16, 128, 128), shards=(48, 512, 512))
    written = time.perf_counter()
    stored = sum(path.stat().st_size for path in location.rglob("*") if path.is_file())
    pixels = picture.intensities.nbytes
    detail(f"{picture.labels.max()} cells imagined in {imagined - start:.1f} s")
    detail(f"{size(pixels)} of pixels, pyramid and labels, written as OME-Zarr in {written - imagined:.1f} s")
    detail(f"sharded and compressed: {size(stored)} in {location.relative_to(ROOT)}")
    return str(location)


@contextmanager
def mounted(store: str) -> Iterator[Path]:
    """Mount with the very commands that a person types."""
    mountpoint = SCRATCH / "mnt"
    mountpoint.mkdir(parents=True, exist_ok=True)
    say("Mount it.")
    command("zarrfs", "mount", store, str(mountpoint))
    try:
        yield mountpoint
    finally:
        say("Unmount it.")
        command("zarrfs", "umount", str(mountpoint))


def command(*words: str) -> None:
    """Show a command and run it."""
    console.print(f"   [green]$[/green] {' '.join(words)}", markup=True)
    if subprocess.run([str(BIN / words[0]), *words[1:]], check=False).returncode:
        raise zarrfs.ZarrError("the command failed, for the reason that it gave")


def show_files(mountpoint: Path) -> None:
    """List the mount as ``ls`` would, two levels deep."""
    say("Groups are directories now; each array is there as .npy, .raw and .json.")
    for path, depth in walk(mountpoint):
        if path.is_dir():
            console.print(f"   {'':>10}  {'  ' * depth}[blue]{path.name}/[/blue]")
        else:
            console.print(f"   {size(path.stat().st_size):>10}  {'  ' * depth}{path.name}")


def walk(directory: Path, depth: int = 0, most: int = 24) -> Iterator[tuple[Path, int]]:
    """Yield the first entries of a directory, and of those below it, with how deep they are."""
    names = sorted(name for name in os.listdir(directory) if not name.startswith("."))
    for name in names[:most]:
        yield directory / name, depth
        if depth < 2 and (directory / name).is_dir():
            yield from walk(directory / name, depth + 1, most)


def compare(store: str, mountpoint: Path) -> bool:
    """Map one array with NumPy through the kernel, and hold it against what the engine reads."""
    array, file = pick_array(store, mountpoint)
    say("NumPy maps one of the files; it knows nothing of Zarr.")
    console.print(f'   >>> image = np.load("{file}", mmap_mode="r")')
    image = np.load(file, mmap_mode="r")
    console.print("   >>> image.shape, image.dtype")
    console.print(f"   ({image.shape}, {image.dtype!r})")

    start = time.perf_counter()
    compared = equal = 0
    for part in parts(image):
        through_kernel, from_engine = np.asarray(image[part]), np.asarray(array[part])
        compared += through_kernel.nbytes
        if through_kernel.dtype == from_engine.dtype and through_kernel.tobytes() == from_engine.tobytes():
            equal += through_kernel.nbytes
    elapsed = time.perf_counter() - start
    if equal != compared:
        console.print(f"   [red]{compared - equal} of {compared} bytes are in parts that differ[/red]")
        return False
    draw(image)
    whole = "All" if compared == image.nbytes else "A sample of"
    detail(
        f"[green]{whole} {compared:,} bytes equal what the engine reads[/green] ({elapsed:.2f} s for both)"
    )
    return True


def draw(image: np.ndarray[Any, Any], columns: int = 76) -> None:
    """Draw the middle plane with characters, as seen through the mount."""
    if image.ndim < 2 or image.dtype.kind not in "iuf" or min(image.shape[-2:]) < 8:
        return
    # The middle along z, the first of everything before it.
    plane = np.asarray(image[(0,) * (image.ndim - 3)])
    if plane.ndim == 3:
        plane = plane[len(plane) // 2]
    height, width = plane.shape
    columns = min(columns, width)
    rows = max(1, round(columns * height / width / 2))
    ys, xs = np.linspace(0, height - 1, rows).astype(int), np.linspace(0, width - 1, columns).astype(int)
    picture = plane[np.ix_(ys, xs)].astype(float)
    low, high = np.nanpercentile(picture, (30, 99))
    shades = np.clip(np.nan_to_num((picture - low) / max(high - low, 1e-9)) * len(SHADES), 0, len(SHADES) - 1)
    for line in shades.astype(int):
        console.print("   " + "".join(SHADES[shade] for shade in line), markup=False, style="cyan")


def pick_array(store: str, mountpoint: Path) -> tuple[zarrfs.Array, Path]:
    """Return the largest array that is a .npy file in the mount, opened with the engine, and the file."""
    node = zarrfs.open(store, cache_size=0)
    if isinstance(node, zarrfs.Array):
        # An array alone is shown by the name of its store.
        return node, next(mountpoint.glob("*.npy"))
    found = []
    for path, member in node.walk():
        file = mountpoint / f"{path}.npy"
        if isinstance(member, zarrfs.Array) and file.exists():
            found.append((member.nbytes, path, member, file))
    if not found:
        raise zarrfs.ZarrError(f"{store} has no array that can be a .npy file")
    _, _, array, file = max(found, key=lambda entry: entry[:2])
    return array, file


def parts(image: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Yield selections that cover the array, or, of a very large one, planes spread over it."""
    if image.ndim == 0 or image.nbytes == 0:
        yield ...
        return
    plane = max(1, image.nbytes // image.shape[0])
    wanted = max(1, min(image.shape[0], MAX_COMPARED // plane))
    for index in np.unique(np.linspace(0, image.shape[0] - 1, wanted).astype(int)):
        yield int(index)


def show_picture(store: str) -> None:
    """Open the viewer where there is a display; without one, let it write a screenshot. It is an extra."""
    if not all(find_spec(name) for name in ("PyQt6", "pyqtgraph", "zarrfs_viewer.main")):
        say("The desktop viewer is not installed here (the extra zarrfs[viewer]), so no picture this time.")
        return
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        say("Look at it. (Close the window to end the demo.)")
        command("zarrfs-viewer", store)
        return
    picture = SCRATCH / "screenshot.png"
    say("There is no display here, so the viewer draws into a file.")
    command("zarrfs-viewer", "--screenshot", str(picture), store)
    detail(f"{size(picture.stat().st_size)} in {picture}")


def say(text: str) -> None:
    console.print(Text("\n" + text, style="bold"))


def detail(text: str) -> None:
    console.print(f"   {text}")


def size(nbytes: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if nbytes < 1024 or unit == "PiB":
            break
        nbytes /= 1024
    return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
