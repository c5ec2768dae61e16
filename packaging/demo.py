"""The demonstration of zarrfs: a Zarr store is mounted, and NumPy maps one of its arrays as a regular file.

``demo.sh`` sets up the checkout and runs this program. Without an argument, a synthetic microscopy image is created.
With an argument, the store at that location is used. It is only read.
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
OUTPUT_DIRECTORY = ROOT / "build" / "demo"
BIN = Path(sys.executable).parent

MAX_COMPARED_NBYTES = 512 << 20
"""The maximum number of bytes that are compared between the mount and the engine. Of larger arrays, evenly spaced
planes are compared.
"""

SHADES = " .:-=+*#%@"
"""Characters in the order of brightness."""

console = Console(highlight=False, soft_wrap=True)


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: packaging/demo.sh [STORE]", file=sys.stderr)
        return 2
    console.print("[bold]zarrfs[/bold]: Zarr arrays as regular files\n")
    try:
        store = arguments[0] if arguments else make_store()
        with mounted(store) as mountpoint:
            show_files(mountpoint)
            equal = compare(store, mountpoint)
        show_picture(store)
    except zarrfs.ZarrError as error:
        console.print(f"\n[red]The demo failed:[/red] {error}")
        return 1
    if not equal:
        return 1
    console.print(f"\nTo mount another store:  {BIN / 'zarrfs'} mount STORE MOUNTPOINT")
    return 0


def make_store() -> str:
    """Write the synthetic image with zarrfs, and return its location."""
    location = OUTPUT_DIRECTORY / "cells.ome.zarr"
    location.parent.mkdir(parents=True, exist_ok=True)
    print_heading(
        "Create a synthetic image of cells: 3 channels of 40 planes with 512 x 512 pixels, and labels of the nuclei."
    )
    start = time.perf_counter()
    picture = synthetic.make_picture((40, 512, 512))
    created = time.perf_counter()
    synthetic.write_image(str(location), picture, chunks=(16, 128, 128), shards=(48, 512, 512))
    written = time.perf_counter()
    stored = sum(path.stat().st_size for path in location.rglob("*") if path.is_file())
    pixels = picture.intensities.nbytes
    print_detail(f"{picture.labels.max()} cells created in {created - start:.1f} s")
    print_detail(
        f"{size(pixels)} of pixels, pyramid and labels, written as OME-Zarr in {written - created:.1f} s"
    )
    print_detail(f"sharded and compressed: {size(stored)} in {location.relative_to(ROOT)}")
    return str(location)


@contextmanager
def mounted(store: str) -> Iterator[Path]:
    """Mount with the commands that a user enters."""
    mountpoint = OUTPUT_DIRECTORY / "mnt"
    mountpoint.mkdir(parents=True, exist_ok=True)
    print_heading("Mount the store.")
    command("zarrfs", "mount", store, str(mountpoint))
    try:
        yield mountpoint
    finally:
        print_heading("Unmount the store.")
        command("zarrfs", "umount", str(mountpoint))


def command(*arguments: str) -> None:
    """Print a command and run it."""
    console.print(f"   [green]$[/green] {' '.join(arguments)}", markup=True)
    if subprocess.run([str(BIN / arguments[0]), *arguments[1:]], check=False).returncode:
        raise zarrfs.ZarrError("the command failed; its error message is printed above")


def show_files(mountpoint: Path) -> None:
    """List the first three levels of the mount."""
    print_heading("Groups are directories. Each array is a .npy, a .raw and a .json file.")
    for path, depth in walk(mountpoint):
        if path.is_dir():
            console.print(f"   {'':>10}  {'  ' * depth}[blue]{path.name}/[/blue]")
        else:
            console.print(f"   {size(path.stat().st_size):>10}  {'  ' * depth}{path.name}")


def walk(directory: Path, depth: int = 0, max_entries: int = 24) -> Iterator[tuple[Path, int]]:
    """Yield the first entries of a directory and of its subdirectories, with their depth."""
    names = sorted(name for name in os.listdir(directory) if not name.startswith("."))
    for name in names[:max_entries]:
        yield directory / name, depth
        if depth < 2 and (directory / name).is_dir():
            yield from walk(directory / name, depth + 1, max_entries)


def compare(store: str, mountpoint: Path) -> bool:
    """Map one array with NumPy, and compare it with the values that the engine reads."""
    array, file = pick_array(store, mountpoint)
    print_heading("NumPy maps one of the files into memory, without Zarr.")
    console.print(f'   >>> image = np.load("{file}", mmap_mode="r")')
    image = np.load(file, mmap_mode="r")
    console.print("   >>> image.shape, image.dtype")
    console.print(f"   ({image.shape}, {image.dtype!r})")

    start = time.perf_counter()
    compared = equal = 0
    for region in regions(image):
        mapped, expected = np.asarray(image[region]), np.asarray(array[region])
        compared += mapped.nbytes
        if mapped.dtype == expected.dtype and mapped.tobytes() == expected.tobytes():
            equal += mapped.nbytes
    elapsed = time.perf_counter() - start
    if equal != compared:
        console.print(f"   [red]{compared - equal} of {compared} bytes are in regions that differ[/red]")
        return False
    draw(image)
    whole = "All" if compared == image.nbytes else "A sample of"
    print_detail(
        f"[green]{whole} {compared:,} bytes equal the values that the engine reads[/green] ({elapsed:.2f} s for both)"
    )
    return True


def draw(image: np.ndarray[Any, Any], columns: int = 76) -> None:
    """Draw the middle plane of the mapped array with characters."""
    if image.ndim < 2 or image.dtype.kind not in "iuf" or min(image.shape[-2:]) < 8:
        return
    # The middle plane along z, and the first index of all dimensions before z.
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
    for row_shades in shades.astype(int):
        console.print("   " + "".join(SHADES[shade] for shade in row_shades), markup=False, style="cyan")


def pick_array(store: str, mountpoint: Path) -> tuple[zarrfs.Array, Path]:
    """Return the largest array that has a .npy file in the mount, and the path of that file."""
    node = zarrfs.open(store, cache_size=0)
    if isinstance(node, zarrfs.Array):
        # The file of a root array has the name of the store.
        return node, next(mountpoint.glob("*.npy"))
    candidates = []
    for path, member in node.walk():
        file = mountpoint / f"{path}.npy"
        if isinstance(member, zarrfs.Array) and file.exists():
            candidates.append((member.nbytes, path, member, file))
    if not candidates:
        raise zarrfs.ZarrError(f"{store} contains no array that has a .npy file")
    _, _, array, file = max(candidates, key=lambda entry: entry[:2])
    return array, file


def regions(image: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Yield selections that cover the array, or evenly spaced planes of a very large array."""
    if image.ndim == 0 or image.nbytes == 0:
        yield ...
        return
    plane = max(1, image.nbytes // image.shape[0])
    count = max(1, min(image.shape[0], MAX_COMPARED_NBYTES // plane))
    for index in np.unique(np.linspace(0, image.shape[0] - 1, count).astype(int)):
        yield int(index)


def show_picture(store: str) -> None:
    """Open the viewer if it is installed. Without a display, the viewer writes a screenshot."""
    if not all(find_spec(name) for name in ("PyQt6", "pyqtgraph", "zarrfs_viewer.main")):
        print_heading("The desktop viewer (the extra zarrfs[viewer]) is not installed.")
        return
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        print_heading("Open the viewer. Close the window to end the demo.")
        command("zarrfs-viewer", store)
        return
    picture = OUTPUT_DIRECTORY / "screenshot.png"
    print_heading("There is no display, so the viewer writes a screenshot.")
    command("zarrfs-viewer", "--screenshot", str(picture), store)
    print_detail(f"{size(picture.stat().st_size)} in {picture}")


def print_heading(text: str) -> None:
    console.print(Text("\n" + text, style="bold"))


def print_detail(text: str) -> None:
    console.print(f"   {text}")


def size(nbytes: float) -> str:
    """Return a size with a binary unit, such as ``3.2 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if nbytes < 1024 or unit == "PiB":
            break
        nbytes /= 1024
    return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
