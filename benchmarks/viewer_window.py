"""The viewer's window beside napari, on the same pyramid, in one run.

``python -m benchmarks.viewer_window [--napari PYTHON] [--planes 128] [--size 2048] [--keep DIRECTORY]`` writes the
pyramid of ``benchmarks.viewer_core`` (uint16, chunks of 64 cubed), then starts each program in a process and on a
virtual screen (Xvfb, 1280 x 900, software GL) of its own, and prints medians and ratios. ``PYTHON`` is an interpreter
with napari, zarr and dask (``pip install 'napari[pyqt6]' zarr dask``); without it only ours runs.

Measured: from the start of the process to the window; from opening to the first pixels; steps of one slice at 30 a
second, from asking to the exact picture being painted; the longest time that the event loop did not turn, while
opening and while stepping; a change of contrast; resident memory at the end.
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
CONTRASTS = 30
PATIENCE = 60.0


class Heart:
    """Beats every millisecond on the event loop, and remembers its longest pause."""

    def __init__(self, timer: Any) -> None:
        self._timer = timer
        self._last = time.perf_counter()
        self.longest = 0.0
        timer.setInterval(1)
        timer.timeout.connect(self._beat)
        timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.longest = max(self.longest, now - self._last)
        self._last = now

    def begin(self) -> None:
        """Measure from now on."""
        self._last, self.longest = time.perf_counter(), 0.0


def resident_bytes() -> int:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def process_start() -> float:
    """Return when this process began, as ``time.time`` has it."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def drive(
    started: float,
    process_events: Callable[[], object],
    heart: Heart,
    open_image: Callable[[], object],
    has_pixels: Callable[[], bool],
    step: Callable[[int], object],
    shows: Callable[[int], bool],
    planes: int,
    change_contrast: Callable[[int], object],
    drawn: Callable[[], int],
) -> dict[str, float]:
    """Do the same with either program; return seconds by name, and bytes."""

    def until(condition: Callable[[], bool]) -> float:
        start = time.perf_counter()
        while not condition():
            process_events()
            if time.perf_counter() - start > PATIENCE:
                raise TimeoutError("the program does not come to an end with a step")
        return time.perf_counter()

    process_events()
    result = {"window": time.time() - started}
    heart.begin()
    begin = time.perf_counter()
    open_image()
    result["first pixels"] = until(has_pixels) - begin
    result["blocked while opening"] = heart.longest
    first = planes // 2
    step(first)
    until(lambda: shows(first))
    heart.begin()
    times = []
    for number in range(STEPS):
        z = (first + 1 + number) % planes
        begin = time.perf_counter()
        step(z)
        times.append(until(lambda z=z: shows(z)) - begin)  # type: ignore[misc]
        rest = begin + STEP_SECONDS
        while time.perf_counter() < rest:
            process_events()
    times.sort()
    result["step, median"] = times[len(times) // 2]
    result["step, 95 %"] = times[int(len(times) * 0.95)]
    result["blocked while stepping"] = heart.longest
    times = []
    for number in range(CONTRASTS):
        before = drawn()
        begin = time.perf_counter()
        change_contrast(number)
        times.append(until(lambda before=before: drawn() > before) - begin)  # type: ignore[misc]
    result["contrast"] = sorted(times)[len(times) // 2]
    result["memory"] = float(resident_bytes())
    return result


def run_ours(location: str, planes: int, started: float) -> dict[str, float]:
    """Drive our own window."""
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
        window.framed.connect(lambda _: frames.__setitem__(0, frames[0] + 1))

        def shows(z: int) -> bool:
            frame = window.canvas.frame
            return frame is not None and frame.exact and round(frame.state.intent.position[0]) == z

        try:
            return drive(
                started,
                application.processEvents,
                Heart(timer),
                lambda: window.open_location(location),
                lambda: window.canvas.frame is not None,
                lambda z: window.dimensions.set_position(0, z),
                shows,
                planes,
                lambda number: window.session.change_channel(0, limits=(0.0, 900.0 + number)),
                lambda: frames[0],
            )
        finally:
            timer.stop()
            window.close()


def run_napari(location: str, planes: int, started: float) -> dict[str, float]:
    """Drive napari, which reads through dask as its users do."""
    import dask.array
    import napari
    from qtpy.QtCore import QTimer
    from qtpy.QtWidgets import QApplication

    viewer = napari.Viewer()
    application = QApplication.instance()
    viewer.window._qt_window.resize(1280, 900)
    drawn = [0]
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    canvas.events.draw.connect(lambda _: drawn.__setitem__(0, drawn[0] + 1))
    timer = QTimer()
    wanted = [0]
    layers: list[Any] = []

    def open_image() -> None:
        levels = [dask.array.from_zarr(f"{location}/{level}") for level in range(3)]
        layers.append(
            viewer.add_image(levels, multiscale=True, scale=[1, 0.5, 0.5], contrast_limits=(0, 1000))
        )
        wanted[0] = drawn[0] + 1

    def step(z: int) -> None:
        wanted[0] = drawn[0] + 1
        viewer.dims.set_current_step(0, z)

    def change_contrast(number: int) -> None:
        layers[0].contrast_limits = (0, 900 + number)

    assert application is not None
    return drive(
        started,
        application.processEvents,
        Heart(timer),
        open_image,
        lambda: drawn[0] >= wanted[0],
        step,
        lambda z: viewer.dims.current_step[0] == z and drawn[0] >= wanted[0],
        planes,
        change_contrast,
        lambda: drawn[0],
    )


def in_a_process(python: str, program: str, location: str, planes: int) -> dict[str, float]:
    """Run one program on a virtual screen of its own; return what it measured."""
    command = [python, "-m", "benchmarks.viewer_window", "--program", program, "--keep", location]
    command += ["--planes", str(planes)]
    xvfb = shutil.which("xvfb-run")
    if xvfb is not None:
        command = [xvfb, "-a", "-s", "-screen 0 1280x900x24", *command]
    environment = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def table(results: dict[str, dict[str, float]]) -> str:
    """Return the measurements side by side; a ratio above 1 says that ours is faster, or smaller."""
    programs = list(results)
    lines = [
        f"{'':<24}" + "".join(f"{name:>14}" for name in programs) + ("   ratio" if len(programs) > 1 else "")
    ]
    for name, ours in results["zarrfs"].items():
        values = [results[program][name] for program in programs]
        shown = [
            f"{value / 2**20:.0f} MiB" if name == "memory" else f"{value * 1e3:.1f} ms" for value in values
        ]
        ratio = f"{values[1] / ours:8.1f}" if len(values) > 1 else ""
        lines.append(f"{name:<24}" + "".join(f"{text:>14}" for text in shown) + ratio)
    return "\n".join(lines)


def main() -> None:
    """Run both, or be one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--napari", metavar="PYTHON", help="an interpreter that has napari")
    parser.add_argument("--planes", type=int, default=128)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="where the pyramid is, or is to be kept"
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
        results = {"zarrfs": in_a_process(sys.executable, "zarrfs", str(directory), options.planes)}
        if options.napari is not None:
            results["napari"] = in_a_process(options.napari, "napari", str(directory), options.planes)
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()
