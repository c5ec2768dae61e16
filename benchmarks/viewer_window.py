"""Benchmark of the window of the viewer, and of napari, with the same pyramid.

``python -m benchmarks.viewer_window [--napari PYTHON] [--planes 128] [--size 2048] [--keep DIRECTORY]`` writes the
pyramid of ``benchmarks.viewer_core`` (uint16, chunks of 64 cubed). Then it runs each program in its own process
with its own virtual screen (Xvfb, 1280 x 900, software GL), and prints medians and ratios. ``PYTHON`` is an
interpreter with napari, zarr and dask (``pip install 'napari[pyqt6]' zarr dask``). Without it, only the viewer of
zarrfs runs.

The benchmark measures the time from the start of the process to the window, the time from opening to the first pixels,
the time from a request for the next slice to the painted exact image at 30 steps per second, the longest interval
in which the event loop was blocked during opening and stepping, the time of a contrast change, and the resident
memory at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 90
STEP_SECONDS = 1 / 30
CONTRAST_CHANGES = 30
TIMEOUT_SECONDS = 60.0


class EventLoopMonitor:
    """Measures the longest interval between two timer events. The timer fires every millisecond."""

    def __init__(self, timer: Any) -> None:
        self._timer = timer
        self._last = time.perf_counter()
        self.longest_interval = 0.0
        timer.setInterval(1)
        timer.timeout.connect(self._on_timeout)
        timer.start()

    def _on_timeout(self) -> None:
        now = time.perf_counter()
        self.longest_interval = max(self.longest_interval, now - self._last)
        self._last = now

    def reset(self) -> None:
        """Start a new measurement."""
        self._last, self.longest_interval = time.perf_counter(), 0.0


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def process_start() -> float:
    """Return the start time of this process in seconds since the epoch."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def drive(
    started: float,
    process_events: Callable[[], object],
    monitor: EventLoopMonitor,
    open_image: Callable[[], object],
    has_pixels: Callable[[], bool],
    step: Callable[[int], object],
    is_shown: Callable[[int], bool],
    planes: int,
    change_contrast: Callable[[int], object],
    count_frames: Callable[[], int],
) -> dict[str, float]:
    """Run the benchmark with one program. Return seconds by name, and the memory in bytes."""

    def wait_until(condition: Callable[[], bool]) -> float:
        start = time.perf_counter()
        while not condition():
            process_events()
            if time.perf_counter() - start > TIMEOUT_SECONDS:
                raise TimeoutError(f"a step took more than {TIMEOUT_SECONDS:.0f} s")
        return time.perf_counter()

    process_events()
    result = {"window": time.time() - started}
    monitor.reset()
    start = time.perf_counter()
    open_image()
    result["first pixels"] = wait_until(has_pixels) - start
    result["blocked while opening"] = monitor.longest_interval
    first = planes // 2
    step(first)
    wait_until(lambda: is_shown(first))
    monitor.reset()
    times = []
    for number in range(STEPS):
        z = (first + 1 + number) % planes
        start = time.perf_counter()
        step(z)
        times.append(wait_until(lambda z=z: is_shown(z)) - start)  # type: ignore[misc]
        rest = start + STEP_SECONDS
        while time.perf_counter() < rest:
            process_events()
    times.sort()
    result["step, median"] = times[len(times) // 2]
    result["step, 95 %"] = times[int(len(times) * 0.95)]
    result["blocked while stepping"] = monitor.longest_interval
    times = []
    for number in range(CONTRAST_CHANGES):
        before = count_frames()
        start = time.perf_counter()
        change_contrast(number)
        times.append(wait_until(lambda before=before: count_frames() > before) - start)  # type: ignore[misc]
    result["contrast"] = sorted(times)[len(times) // 2]
    result["memory"] = float(resident_bytes())
    return result


def run_ours(location: str, planes: int, started: float) -> dict[str, float]:
    """Run the benchmark with the viewer of zarrfs."""
    from PyQt6.QtCore import QSettings, QTimer
    from zarrfs_viewer.qt.window.application import make_application
    from zarrfs_viewer.qt.window.main_window import MainWindow

    application = make_application()
    with tempfile.TemporaryDirectory() as scratch:
        window = MainWindow(QSettings(f"{scratch}/settings.ini", QSettings.Format.IniFormat))
        window.resize(1280, 900)
        window.show()
        timer = QTimer()
        frames = [0]
        window.frame_shown.connect(lambda _: frames.__setitem__(0, frames[0] + 1))

        def is_shown(z: int) -> bool:
            frame = window.canvas.frame
            return frame is not None and frame.exact and round(frame.state.intent.position[0]) == z

        try:
            return drive(
                started,
                application.processEvents,
                EventLoopMonitor(timer),
                lambda: window.open_location(location),
                lambda: window.canvas.frame is not None,
                lambda z: window.dimensions.set_position(0, z),
                is_shown,
                planes,
                lambda number: window.session.change_channel(0, limits=(0.0, 900.0 + number)),
                lambda: frames[0],
            )
        finally:
            timer.stop()
            window.close()


def run_napari(location: str, planes: int, started: float) -> dict[str, float]:
    """Run the benchmark with napari, which reads with dask as usual."""
    import dask.array
    import napari
    from qtpy.QtCore import QTimer
    from qtpy.QtWidgets import QApplication

    viewer = napari.Viewer()
    application = QApplication.instance()
    viewer.window._qt_window.resize(1280, 900)
    frame_count = [0]
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    canvas.events.draw.connect(lambda _: frame_count.__setitem__(0, frame_count[0] + 1))
    timer = QTimer()
    wanted = [0]
    layers: list[Any] = []

    def open_image() -> None:
        levels = [dask.array.from_zarr(f"{location}/{level}") for level in range(3)]
        layers.append(
            viewer.add_image(levels, multiscale=True, scale=[1, 0.5, 0.5], contrast_limits=(0, 1000))
        )
        wanted[0] = frame_count[0] + 1

    def step(z: int) -> None:
        wanted[0] = frame_count[0] + 1
        viewer.dims.set_current_step(0, z)

    def change_contrast(number: int) -> None:
        layers[0].contrast_limits = (0, 900 + number)

    assert application is not None
    return drive(
        started,
        application.processEvents,
        EventLoopMonitor(timer),
        open_image,
        lambda: frame_count[0] >= wanted[0],
        step,
        lambda z: viewer.dims.current_step[0] == z and frame_count[0] >= wanted[0],
        planes,
        change_contrast,
        lambda: frame_count[0],
    )


def run_in_process(python: str, program: str, location: str, planes: int) -> dict[str, float]:
    """Run one program with its own virtual screen, and return its measurements."""
    command = [python, "-m", "benchmarks.viewer_window", "--program", program, "--keep", location]
    command += ["--planes", str(planes)]
    xvfb = shutil.which("xvfb-run")
    if xvfb is not None:
        command = [xvfb, "-a", "-s", "-screen 0 1280x900x24", *command]
    environment = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"}
    completed = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if completed.returncode:
        raise SystemExit(f"{program} failed:\n{completed.stderr}")
    result: dict[str, float] = json.loads(completed.stdout.splitlines()[-1])
    return result


def table(results: dict[str, dict[str, float]]) -> str:
    """Return a table of the measurements. Above a ratio of 1, zarrfs is faster or needs less memory."""
    programs = list(results)
    lines = [
        f"{'':<24}" + "".join(f"{name:>14}" for name in programs) + ("   ratio" if len(programs) > 1 else "")
    ]
    for name, zarrfs_value in results["zarrfs"].items():
        values = [results[program][name] for program in programs]
        texts = [
            f"{value / 2**20:.0f} MiB" if name == "memory" else f"{value * 1e3:.1f} ms" for value in values
        ]
        ratio = f"{values[1] / zarrfs_value:8.1f}" if len(values) > 1 else ""
        lines.append(f"{name:<24}" + "".join(f"{text:>14}" for text in texts) + ratio)
    return "\n".join(lines)


def main() -> None:
    """Run the programs and print the table, or run one program in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--napari", metavar="PYTHON", help="the interpreter of an environment with napari")
    parser.add_argument("--planes", type=int, default=128)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="the directory of the pyramid; existing data is used"
    )
    parser.add_argument("--program", choices=("zarrfs", "napari"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program is not None:
        run = run_ours if options.program == "zarrfs" else run_napari
        sys.stdout.write(json.dumps(run(str(options.keep), options.planes, process_start())) + "\n")
        return
    from benchmarks.viewer_core import write_pyramid

    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch) / "pyramid.zarr"
        if not directory.exists():
            write_pyramid(directory, options.planes, options.size)
        results = {"zarrfs": run_in_process(sys.executable, "zarrfs", str(directory), options.planes)}
        if options.napari is not None:
            results["napari"] = run_in_process(options.napari, "napari", str(directory), options.planes)
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()
