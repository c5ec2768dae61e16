"""The programs that ``benchmarks.viewer_window`` measures: the viewer of zarrfs, and napari.

``python -m benchmarks.viewer_programs NAME LOCATION SCRATCH`` runs one of them in a process of its own that imports
little else, so that its memory is that of the program. ``SCRATCH`` is an empty directory. The program is used through
its window. It also reads commands from standard input, one per line, for what has no key in both programs, and answers
``report`` with one line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PROGRAMS", "STEP_KEYS"]

STEP_KEYS = {"zarrfs": ("period", "comma"), "napari": ("Right", "Left")}
"""The keys for the next and the previous slice, by program."""


class EventLoopMonitor:
    """Measures the longest interval between two timer events, and its parts. The timer fires every millisecond.

    The parts are the processor time of the thread in the interval, and the time that it waited for a processor, because
    other processes used them. In the rest, the thread waited for something else, or the host of a virtual machine used
    the processor (``stolen``, which is measured for all processors since the last report).
    """

    def __init__(self, timer: Any) -> None:
        self._timer = timer
        self._schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._first = self._last = self._times()
        self._longest: tuple[float, ...] = (0.0, 0.0, 0.0)
        self._stolen = stolen_seconds()
        timer.setInterval(1)
        timer.timeout.connect(self._on_timeout)
        timer.start()

    def _times(self) -> tuple[float, float, float]:
        """Return the time, and the processor time and the waiting time of the thread, in seconds."""
        waited = int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9
        return time.perf_counter(), time.thread_time(), waited

    def _on_timeout(self) -> None:
        now = self._times()
        interval = tuple(end - start for end, start in zip(now, self._last, strict=True))
        self._longest = max(self._longest, interval)
        self._last = now

    def reset(self) -> None:
        """Start a new measurement."""
        self._first = self._last = self._times()
        self._longest = (0.0, 0.0, 0.0)
        self._stolen = stolen_seconds()

    def report(self) -> dict[str, float]:
        """Return the measurements since the last call, and start new ones."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        stall, used, waited = self._longest
        result = {
            "stall": stall,
            "stall_cpu": used,
            "stall_waited": waited,
            "stolen": stolen_seconds() - self._stolen,
            "gui_cpu": self._times()[1] - self._first[1],
            "cpu": usage.ru_utime + usage.ru_stime,
            "memory": float(resident_bytes()),
        }
        self.reset()
        return result


def stolen_seconds() -> float:
    """Return the time in which the host of a virtual machine used its processors, since the start of the machine."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _read_commands(notifier_class: Any, run: Callable[[str], object]) -> Any:
    """Call ``run`` in the event loop with each line of standard input. Keep the result."""
    os.set_blocking(0, False)
    rest = [b""]

    def read(*_: object) -> None:
        data = os.read(0, 65536)
        *lines, rest[0] = (rest[0] + data).split(b"\n")
        for line in lines:
            run(line.decode())
        if not data:
            run("quit")

    notifier = notifier_class(0, notifier_class.Type.Read)
    notifier.activated.connect(read)
    return notifier


def _answer(values: dict[str, float]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def run_viewer(location: str, scratch: str) -> None:
    """Run the viewer of zarrfs until its window is closed."""
    from PyQt6.QtCore import QSettings, QSocketNotifier, QTimer
    from zarrfs_viewer.qt.support.garbage import GuiThreadCollector
    from zarrfs_viewer.qt.window.application import make_application
    from zarrfs_viewer.qt.window.main_window import MainWindow

    application = make_application()
    collector = GuiThreadCollector(application)
    window = MainWindow(QSettings(f"{scratch}/settings.ini", QSettings.Format.IniFormat), in_steps=True)
    window.show()
    window.complete_in_steps()
    window.call_when_complete(collector.freeze)
    timer = QTimer()
    monitor = EventLoopMonitor(timer)
    is_ready: list[bool] = []

    def run(command: str) -> None:
        name, _, value = command.partition(" ")
        if name == "open":
            window.open_location(location)
        elif name == "jump":
            from zarrfs_viewer.qt.panels.position.position import Position  # the window is visible before

            window.panel(Position).dimensions.set_position(0, int(value))
        elif name == "zoom":
            window.canvas.fit() if value == "fit" else window.canvas.one_to_one()
        elif name == "report":
            report()
        elif name == "quit":
            window.close()

    def report() -> None:
        """Answer. The first answer waits until all parts of the window exist and the engine is imported."""
        if is_ready or (window.is_complete and window.session.worker.is_idle):
            is_ready.append(True)
            _answer(monitor.report())
        else:
            QTimer.singleShot(1, report)

    notifier = _read_commands(QSocketNotifier, run)
    application.exec()
    notifier.setEnabled(False)
    timer.stop()
    collector.stop()


def run_napari(location: str, scratch: str) -> None:
    """Run napari, which reads with dask as usual, until its window is closed."""
    import dask.array
    import napari
    from qtpy.QtCore import QSocketNotifier, QTimer

    from benchmarks.viewer_volume import LEVELS

    viewer = napari.Viewer()
    viewer.window._qt_window.resize(1280, 900)
    monitor = EventLoopMonitor(QTimer(viewer.window._qt_window))

    def run(command: str) -> None:
        name, _, value = command.partition(" ")
        if name == "open":
            levels = [dask.array.from_zarr(f"{location}/{level}") for level in range(LEVELS)]
            viewer.add_image(levels, multiscale=True, scale=[1, 0.5, 0.5], contrast_limits=(0, 1000))
        elif name == "jump":
            viewer.dims.set_current_step(0, int(value))
        elif name == "zoom":
            if value == "fit":
                viewer.reset_view()
            else:
                viewer.camera.zoom = 2.0  # a pixel of the screen for each pixel of 0.5 micrometres
        elif name == "report":
            _answer(monitor.report())
        elif name == "quit":
            viewer.close()

    notifier = _read_commands(QSocketNotifier, run)
    napari.run()
    notifier.setEnabled(False)


PROGRAMS = {"zarrfs": run_viewer, "napari": run_napari}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
