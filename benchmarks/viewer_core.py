"""How fast the viewer's core is, without a window: composition, first pixels, stepping through slices,
memory.

``python -m benchmarks.viewer_core [--planes 256] [--size 2048] [--keep DIRECTORY]`` writes a uint16 pyramid
of 64-cubed zstd chunks (2 GiB at these sizes, 1 GiB of it noise) into a temporary directory and measures, for
a window of 1280 x 900:

- the composition of three channels, one of which changes its contrast with every frame;
- from ``open_dataset`` to the first frame with anything in it, and to the exact one;
- steps of one slice, from asking to the exact frame, at 30 steps a second, as by a finger on a slider.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.dataset import initial_intent, open_dataset
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.rendering.labels import blend_labels
from zarrfs_viewer.rendering.pipeline import Frame, ViewPipeline
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    LabelsSettings,
    ViewIntent,
    Viewport,
    fit,
    with_position,
)
from zarrfs_viewer.streaming.streamer import TileStreamer

import zarrfs

WINDOW = (1280, 900)
STEPS = 120
STEP_SECONDS = 1 / 30


def write_pyramid(directory: Path, planes: int, size: int) -> None:
    """Write blobs over camera noise, three levels."""
    rng = np.random.default_rng(0)
    scales = [[1.0, 0.5 * 2**level, 0.5 * 2**level] for level in range(3)]
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    datasets = [
        {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for level, scale in enumerate(scales)
    ]
    document = {"version": "0.5", "multiscales": [{"name": "benchmark", "axes": axes, "datasets": datasets}]}
    zarrfs.create_group(str(directory), attributes={"ome": document})
    arrays = [
        zarrfs.create_array(
            str(directory),
            str(level),
            shape=(planes, size >> level, size >> level),
            dtype="uint16",
            chunks=(64, 64, 64),
        )
        for level in range(3)
    ]
    y, x = np.ogrid[:size, :size]
    texture = 400 * (1 + np.sin(x / 37) * np.sin(y / 53))
    for start in range(0, planes, 64):
        depth = min(64, planes - start)
        slab = np.empty((depth, size, size), np.uint16)
        for offset in range(depth):
            wave = 200 * (1 + np.sin((x + y + 9 * (start + offset)) / 71))
            slab[offset] = texture + wave + rng.integers(0, 64, (size, size))
        for level, array in enumerate(arrays):
            array[start : start + depth] = slab[:, :: 1 << level, :: 1 << level]


def milliseconds(times: list[float]) -> str:
    """Return median and 95th percentile as text."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"median {statistics.median(times) * 1e3:7.2f} ms   p95 {p95 * 1e3:7.2f} ms"


def timed(action: Callable[[int], object], count: int = 31) -> list[float]:
    """Return the seconds of each of ``count`` calls, after one to warm up."""
    action(0)
    times = []
    for number in range(1, count + 1):
        start = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - start)
    return times


def composition() -> None:
    """Measure composing a window of three channels, one changing."""
    width, height = WINDOW
    rng = np.random.default_rng(0)
    colors = ("#00FF00", "#FF00FF", "viridis")
    for dtype in ("uint8", "uint16", "float32"):
        planes = [rng.gamma(2, 60, (height, width)).astype(dtype) for _ in colors]
        channels = [ChannelSettings(colormap=color, limits=(10.0, 200.0)) for color in colors]

        changed = [[replace(channels[0], limits=(10.0, 200.0 + n)), *channels[1:]] for n in range(32)]
        times = timed(partial(_draw, planes, changed))
        print(f"contrast change, 3 channels {dtype:8} {milliseconds(times)}")
    labels = (np.arange(height)[:, None] // 40 * 33 + np.arange(width) // 40).astype(np.uint16)
    pixels = np.zeros((height, width), np.uint32)
    times = timed(lambda number: blend_labels(pixels, labels, LabelsSettings()))
    print(f"labels over all pixels               {milliseconds(times)}")


def _draw(planes: list[np.ndarray[Any, Any]], changed: list[list[ChannelSettings]], number: int) -> None:
    compose(planes, changed[number])


def _shows(intent: ViewIntent, frame: Frame) -> bool:
    return frame.exact and frame.state.intent.position == intent.position


class Screen:
    """Takes frames and lets a caller wait for one."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._frames: list[tuple[float, Frame]] = []

    def put(self, frame: Frame) -> None:
        """Take a frame."""
        with self._arrived:
            self._frames.append((time.perf_counter(), frame))
            self._arrived.notify_all()

    def wait(self, wanted: Callable[[Frame], bool]) -> float:
        """Return when the first wanted frame came; frames before it are forgotten, it itself is not."""
        with self._arrived:
            while True:
                for position, (moment, frame) in enumerate(self._frames):
                    if wanted(frame):
                        del self._frames[:position]
                        return moment
                self._arrived.wait()


def opening(location: str, screen: Screen, pipeline: ViewPipeline) -> tuple[Image, ViewIntent, Viewport]:
    """Measure from opening to the first and to the exact frame."""
    start = time.perf_counter()
    image = open_dataset(location).open_image()
    intent = initial_intent(image)
    rows, columns = (image.shape[axis] for axis in intent.displayed)
    viewport = fit(*WINDOW, rows, columns, pixel_aspect(image, intent.displayed))
    opened = time.perf_counter()
    pipeline.show(image, intent, viewport)
    first = screen.wait(lambda frame: True)
    exact = screen.wait(lambda frame: frame.exact)
    marks = [(moment - start) * 1e3 for moment in (opened, first, exact)]
    print("open {:.1f} ms, first pixels {:.1f} ms, exact {:.1f} ms".format(*marks))
    return image, intent, viewport


def stepping(
    image: Image, intent: ViewIntent, viewport: Viewport, screen: Screen, pipeline: ViewPipeline
) -> None:
    """Measure steps of one slice at the rate of a moving slider; the first pass is cold, the second warm."""
    axis = next(a for a in image.slider_axes if a not in intent.displayed)
    count = min(STEPS, image.shape[axis] - 1)
    for name in ("cold", "warm"):
        times: list[float] = []
        for number in range(count + 1):
            moved = with_position(intent, axis, number)
            start = time.perf_counter()
            pipeline.show(image, moved, viewport)
            done = screen.wait(partial(_shows, moved))
            times.append(done - start)
            time.sleep(max(0.0, STEP_SECONDS - (time.perf_counter() - start)))
        print(f"jump to another slice, {name}        {times[0] * 1e3:14.2f} ms")
        worst = max(times[1:])
        print(
            f"step of one slice, {name}            {milliseconds(times[1:])}   "
            f"worst {worst * 1e3:.2f} ms, to slice {times.index(worst)}"
        )


def main() -> None:
    """Write the data, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--planes", type=int, default=256)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--keep", type=Path, help="write the data here, or use what is here already")
    options = parser.parse_args()
    composition()
    with tempfile.TemporaryDirectory() as temporary:
        directory = (options.keep or Path(temporary)) / f"pyramid-{options.planes}-{options.size}.zarr"
        if not directory.exists():
            write_pyramid(directory, options.planes, options.size)
        streamer = TileStreamer()
        screen = Screen()
        pipeline = ViewPipeline(streamer, on_frame=screen.put)
        image, intent, viewport = opening(str(directory), screen, pipeline)
        stepping(image, intent, viewport, screen, pipeline)
        print(streamer.memory)
        pipeline.close()
        streamer.close()
    print(
        f"most memory ever held by the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB"
    )


if __name__ == "__main__":
    main()
