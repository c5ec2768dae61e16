"""Movies: a series of pictures as an MP4 file or as numbered PNG files. The functions block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zarrfs.errors import NodeExistsError, StoreError, UnsupportedError
from zarrfs.plugins import install_hint
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.export.writers import Cancelled, Progress
from zarrfs_viewer.rendering.compose import Pixels

if TYPE_CHECKING:
    import subprocess

__all__ = ["MAX_FRAMES", "movie_positions", "write_mp4", "write_series"]

MAX_FRAMES = 100_000
MAX_REASON = 500
"""The maximum number of characters of a message of ffmpeg."""

Draw = Callable[[int], Pixels]
"""Returns the picture at a position, as 0xAARRGGBB. All pictures have the same shape."""


def movie_positions(first: int, last: int, step: int) -> tuple[int, ...]:
    """Return the positions from ``first`` to ``last``, forwards or backwards. Raises UnsupportedError if too many."""
    if step < 1:
        raise UnsupportedError(f"the step of a movie is at least 1, found {step}")
    positions = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if len(positions) > MAX_FRAMES:
        raise UnsupportedError(
            f"a movie has at most {MAX_FRAMES} frames, found {len(positions)}; use a larger step"
        )
    return tuple(positions)


def write_series(
    directory: Path,
    stem: str,
    positions: Sequence[int],
    draw: Draw,
    write: Callable[[Path, Pixels], None],
    progress: Progress | None = None,
) -> None:
    """Write one PNG file per position to a new directory, as ``STEM_00012.png``. On failure the directory is deleted.

    ``write`` writes a picture to a PNG file.

    Raises NodeExistsError if the directory exists; StoreError; ZarrError; Cancelled.
    """
    try:
        directory.mkdir(parents=True)
    except FileExistsError as error:
        raise NodeExistsError(f"{directory} exists; choose another name, or delete it first") from error
    except OSError as error:
        raise StoreError(f"{directory} cannot be created: {error.strerror}", error.errno) from error
    try:
        for number, pixels in _pictures(positions, draw, progress):
            write(directory / f"{stem}_{positions[number]:05}.png", pixels)
    except BaseException:
        import shutil

        shutil.rmtree(directory, ignore_errors=True)
        raise


def write_mp4(
    file: Path,
    positions: Sequence[int],
    draw: Draw,
    frames_per_second: float,
    progress: Progress | None = None,
) -> None:
    """Write an MP4 file (H.264). Needs ``imageio-ffmpeg``. A file with an odd width or height gets a black border.

    Raises UnsupportedError if the package is not installed; StoreError; ZarrError; Cancelled.
    """
    import subprocess

    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise UnsupportedError(f"MP4 needs the package imageio-ffmpeg: {install_hint('movie')}") from error
    with replacing(file) as temporary:
        process: subprocess.Popen[bytes] | None = None
        try:
            for _, pixels in _pictures(positions, draw, progress):
                frame = _even_rgb(pixels)
                if process is None:
                    command = _command(
                        imageio_ffmpeg.get_ffmpeg_exe(), frame.shape, frames_per_second, temporary
                    )
                    process = subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                    )
                assert process.stdin is not None
                process.stdin.write(frame.data)
            if process is not None:
                _, errors = process.communicate()
                if process.returncode:
                    reason = errors.decode(errors="replace").strip()
                    raise StoreError(f"{file} cannot be written: ffmpeg reports: {reason[:MAX_REASON]}")
        finally:
            if process is not None and process.poll() is None:
                process.kill()
                process.communicate()


def _command(program: str, shape: tuple[int, ...], frames_per_second: float, file: Path) -> list[str]:
    """Return the command line of ffmpeg that reads RGB frames from standard input."""
    source = [
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        f"{shape[1]}x{shape[0]}",
        "-r",
        f"{frames_per_second:g}",
    ]
    target = ["-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
    return [program, "-y", "-v", "error", *source, "-i", "-", *target, str(file.absolute())]


def _pictures(
    positions: Sequence[int], draw: Draw, progress: Progress | None
) -> Iterator[tuple[int, Pixels]]:
    """Yield (number, picture) of each position."""
    for number, position in enumerate(positions):
        if progress is not None and not progress(number / len(positions)):
            raise Cancelled
        yield number, draw(position)
    if progress is not None:
        progress(1.0)


def _even_rgb(pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Return (rows, columns, 3) with even numbers of rows and columns, which H.264 needs."""
    height, width = pixels.shape
    rgb = np.zeros((height + height % 2, width + width % 2, 3), np.uint8)
    for channel, shift in enumerate((16, 8, 0)):
        rgb[:height, :width, channel] = (pixels >> np.uint32(shift)).astype(np.uint8)
    return rgb
