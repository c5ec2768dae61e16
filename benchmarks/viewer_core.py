"""Benchmark of the core of the viewer without a window: composition, time to the first frame, slice steps, and memory.

``python -m benchmarks.viewer_core [--planes 256] [--size 2048] [--keep DIRECTORY]`` writes a uint16 pyramid with zstd
chunks of 64 cubed to a temporary directory. With these sizes it has 2 GiB, of which 1 GiB is noise. For a viewport of
1280 x 900 pixels, the benchmark measures:

- the composition of three channels, of which one has other contrast limits in each frame;
- the time from ``open_dataset`` to the first frame and to the exact frame;
- the time from a request for the next slice to the exact frame, at 30 steps per second.
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
from zarrfs_viewer.images.dataset import initial_settings, open_dataset
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.rendering.labels import blend_labels
from zarrfs_viewer.rendering.pipeline import Frame, ViewPipeline
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    DisplaySettings,
    LabelsSettings,
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
    """Write a pyramid of three levels: a smooth pattern with camera noise."""
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
    """Return the median and the 95th percentile as text."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"median {statistics.median(times) * 1e3:7.2f} ms   p95 {p95 * 1e3:7.2f} ms"


def timed(action: Callable[[int], object], count: int = 31) -> list[float]:
    """Return the durations of ``count`` calls in seconds. One more call before them is a warm-up."""
    action(0)
    times = []
    for number in range(1, count + 1):
        start = time.perf_counter()
        action(number)
        times.append(time.perf_counter() - start)
    return times


def measure_composition() -> None:
    """Measure the composition of three channels, of which one changes."""
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


def _is_exact_frame_of(settings: DisplaySettings, frame: Frame) -> bool:
    return frame.complete and frame.state.settings.position == settings.position


class FrameReceiver:
    """Receives frames. A caller can wait for a frame that meets a condition."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._frames: list[tuple[float, Frame]] = []

    def put(self, frame: Frame) -> None:
        """Store a frame."""
        with self._condition:
            self._frames.append((time.perf_counter(), frame))
            self._condition.notify_all()

    def wait(self, condition: Callable[[Frame], bool]) -> float:
        """Wait for the first frame that meets the condition, and return its time of arrival. Earlier frames are
        dropped.
        """
        with self._condition:
            while True:
                for position, (time_of_arrival, frame) in enumerate(self._frames):
                    if condition(frame):
                        del self._frames[:position]
                        return time_of_arrival
                self._condition.wait()


def measure_opening(
    location: str, receiver: FrameReceiver, pipeline: ViewPipeline
) -> tuple[Image, DisplaySettings, Viewport]:
    """Measure the time from opening to the first frame and to the exact frame."""
    start = time.perf_counter()
    image = open_dataset(location).open_image()
    settings = initial_settings(image)
    rows, columns = (image.shape[axis] for axis in settings.displayed)
    viewport = fit(*WINDOW, rows, columns, pixel_aspect(image, settings.displayed))
    opened = time.perf_counter()
    pipeline.show(image, settings, viewport)
    first = receiver.wait(lambda frame: True)
    exact = receiver.wait(lambda frame: frame.complete)
    durations = [(time_of_arrival - start) * 1e3 for time_of_arrival in (opened, first, exact)]
    print("open {:.1f} ms, first pixels {:.1f} ms, exact {:.1f} ms".format(*durations))
    return image, settings, viewport


def measure_steps(
    image: Image,
    settings: DisplaySettings,
    viewport: Viewport,
    receiver: FrameReceiver,
    pipeline: ViewPipeline,
) -> None:
    """Measure steps of one slice at a fixed rate. The first pass is cold, the second is warm."""
    axis = next(a for a in image.slider_axes if a not in settings.displayed)
    count = min(STEPS, image.shape[axis] - 1)
    for name in ("cold", "warm"):
        times: list[float] = []
        for number in range(count + 1):
            moved = with_position(settings, axis, number)
            start = time.perf_counter()
            pipeline.show(image, moved, viewport)
            done = receiver.wait(partial(_is_exact_frame_of, moved))
            times.append(done - start)
            time.sleep(max(0.0, STEP_SECONDS - (time.perf_counter() - start)))
        print(f"jump to another slice, {name}        {times[0] * 1e3:14.2f} ms")
        worst = max(times[1:])
        print(
            f"step of one slice, {name}            {milliseconds(times[1:])}   "
            f"worst {worst * 1e3:.2f} ms, to slice {times.index(worst)}"
        )


def main() -> None:
    """Write the data, run the measurements, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--planes", type=int, default=256)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--keep", type=Path, help="the directory of the data; existing data is used")
    options = parser.parse_args()
    measure_composition()
    with tempfile.TemporaryDirectory() as temporary:
        directory = (options.keep or Path(temporary)) / f"pyramid-{options.planes}-{options.size}.zarr"
        if not directory.exists():
            write_pyramid(directory, options.planes, options.size)
        streamer = TileStreamer()
        receiver = FrameReceiver()
        pipeline = ViewPipeline(streamer, on_frame=receiver.put)
        image, settings, viewport = measure_opening(str(directory), receiver, pipeline)
        measure_steps(image, settings, viewport, receiver, pipeline)
        print(streamer.memory)
        pipeline.close()
        streamer.close()
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
