"""Benchmark of the window of the viewer, and of napari, measured from outside: from keys to pixels on the X screen.

``python -m benchmarks.viewer_window [--napari PYTHON] [--planes 256] [--size 2048] [--keep DIRECTORY]`` writes a volume
of ``planes`` x ``size`` x ``size`` uint16 in chunks of 64 cubed with four levels. Then it runs each program in its own
process with its own virtual screen (Xvfb, 1280 x 900, software GL; openbox if it is installed), and prints a table.
``PYTHON`` is an interpreter with napari, zarr and dask (``pip install "napari[pyqt6]" zarr dask``). Without it, only
the viewer of zarrfs runs.

Keys are sent with XTEST, and the middle of the window is read from the screen until its pixels change. A step is a key
press for the next slice. Steps that change no pixel within a second are counted. ``exact`` is the last change until the
picture is still. Programs report the longest time in which their event loop was blocked, the processor time of the
thread of the user interface, and their memory. Of the longest time, the parts are shown in which the thread used a
processor and in which it waited for one. If the host of a virtual machine took processors away meanwhile (``stolen``),
a long stall says nothing about the program.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.viewer_programs import STEP_KEYS
from benchmarks.x_screen import Area, Screen, ScreenError

STEPS = 60
STEP_SECONDS = 0.1
"""The interval between two single steps."""
JUMPS = 20
HELD_SECONDS = 3.0
REPEAT_MILLISECONDS = (200, 30)
"""The delay and the interval of a held key."""
NO_CHANGE_SECONDS = 1.0
STILL_SECONDS = 0.4
TIMEOUT_SECONDS = 60.0
WIDTH, HEIGHT = 1280, 900
MIDDLE = 0.25
"""The part of the window, in its middle, whose pixels are read. It contains only the picture."""


class Program:
    """A running program, its commands and its screen."""

    def __init__(self, process: subprocess.Popen[str], screen: Screen, name: str, started: float) -> None:
        self._process = process
        self.screen = screen
        self._keys = STEP_KEYS[name]
        self.window, self.area = self._wait_for_window()
        self.window_seconds = time.time() - started
        self.middle = self.area.inner(MIDDLE)
        screen.wait_until_still(self.area.inner(0.9), STILL_SECONDS, TIMEOUT_SECONDS)

    def _wait_for_window(self) -> tuple[int, Area]:
        end = time.time() + TIMEOUT_SECONDS
        while time.time() < end and self._process.poll() is None:
            found = self.screen.program_window()
            if found is not None:
                return found
            time.sleep(0.002)
        raise SystemExit("the program has not opened a window")

    def send(self, command: str) -> None:
        """Send a command. Returns at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def report(self) -> dict[str, float]:
        """Return the measurements of the program since the last report."""
        self.send("report")
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # napari writes warnings between the reports
                result: dict[str, float] = json.loads(line)
                return result
        raise ScreenError("the program has ended")

    def wait_until_still(self) -> int:
        """Wait until the picture is complete, and return its checksum."""
        return self.screen.wait_until_still(self.middle, STILL_SECONDS, TIMEOUT_SECONDS)[1]

    def step(self, back: bool = False) -> float | None:
        """Press the key for the next or the previous slice. Returns seconds until the first change, or None."""
        before = self.screen.checksum(self.middle)
        start = time.perf_counter()
        self.screen.send_key(self._keys[back])
        found = self.screen.wait_for_change(self.middle, before, NO_CHANGE_SECONDS)
        rest = start + STEP_SECONDS - time.perf_counter()
        time.sleep(max(0.0, rest))
        return None if found is None else found[0] - start

    def hold(self) -> int:
        """Hold the key for the next slice, and return the number of different pictures."""
        seen = {self.screen.checksum(self.middle)}
        end = time.perf_counter() + HELD_SECONDS
        with self.screen.held_key(self._keys[0]):
            while time.perf_counter() < end:
                seen.add(self.screen.checksum(self.middle))
        return len(seen) - 1

    def jump(self, plane: int) -> tuple[float, float] | None:
        """Show another slice. Returns seconds until the first change and until the last one; None without a change."""
        before = self.screen.checksum(self.middle)
        start = time.perf_counter()
        self.send(f"jump {plane}")
        found = self.screen.wait_for_change(self.middle, before, NO_CHANGE_SECONDS)
        if found is None:
            return None
        last, _ = self.screen.wait_until_still(self.middle, STILL_SECONDS, TIMEOUT_SECONDS)
        return found[0] - start, max(found[0], last) - start


def _quantile(times: list[float], part: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("nan")


def _stall(phase: str, report: dict[str, float]) -> dict[str, float]:
    """Return the longest stall of a phase with its parts."""
    return {
        f"stall, {phase}": report["stall"],
        "- on a processor, " + phase: report["stall_cpu"],
        "- waiting for a processor, " + phase: report["stall_waited"],
        f"stolen by the host, {phase}": report["stolen"],
    }


def measure(program: Program, planes: int) -> dict[str, float]:
    """Run the benchmark with one program. Returns seconds, counts, and bytes of memory, by name."""
    result = {"window": program.window_seconds, "memory, empty": program.report()["memory"]}
    start = time.perf_counter()
    program.send("open")
    while not program.screen.shows_picture(program.middle):
        if time.perf_counter() - start > TIMEOUT_SECONDS:
            raise SystemExit("the program has not shown a picture")
    result["first pixels"] = time.perf_counter() - start
    program.wait_until_still()
    result |= _stall("opening", program.report())
    program.screen.focus(program.window)
    program.send("jump 0")
    program.send("zoom fit")
    program.wait_until_still()
    # Half of the steps at fit are back to the first slice: one slice of the displayed level is several of level 0.
    at_fit = [*[False] * (STEPS // 2), *[True] * (STEPS // 2)]
    for back in at_fit:  # after these steps the slices are in memory
        program.step(back)
    series = (("fit, warm", "fit", 0, at_fit), ("1:1, cold", "1", planes // 3, [False] * STEPS))
    for prefix, zoom, first, directions in series:
        program.send(f"zoom {zoom}")
        program.send(f"jump {first}")
        program.wait_until_still()
        program.report()
        steps = [program.step(back) for back in directions]
        times = [seconds for seconds in steps if seconds is not None]
        report = program.report()
        result[f"step at {prefix}, median"] = _quantile(times, 0.5)
        result[f"step at {prefix}, 95 %"] = _quantile(times, 0.95)
        result[f"step at {prefix}, without change"] = steps.count(None)
        result[f"step at {prefix}, CPU of GUI thread"] = report["gui_cpu"] / STEPS
        result |= _stall(f"stepping at {prefix}", report)
    result["memory, after 60 steps at 1:1"] = report["memory"]
    rng = random.Random(1)
    jumps = [program.jump(rng.randrange(planes)) for _ in range(JUMPS)]
    shown = [seconds for seconds in jumps if seconds is not None]
    result["jump at 1:1, first pixels"] = _quantile([first for first, _ in shown], 0.5)
    result["jump at 1:1, exact"] = _quantile([last for _, last in shown], 0.5)
    program.send("jump 0")
    program.wait_until_still()
    program.report()
    result["key held for 3 s, pictures"] = program.hold()
    result |= _stall("key held", program.report())
    result["memory, at the end"] = program.report()["memory"]
    return result


@contextmanager
def _screen() -> Iterator[str]:
    """Start a virtual screen, with a window manager if there is one, and yield the name of the display."""
    xvfb = shutil.which("Xvfb")
    if xvfb is None:
        raise SystemExit("Xvfb is not installed: it is needed for the virtual screen")
    read_end, write_end = os.pipe()
    command = [xvfb, "-displayfd", str(write_end), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    processes = [server]
    try:
        with os.fdopen(read_end) as numbers:
            display = f":{numbers.readline().strip()}"
        manager = shutil.which("openbox")
        if manager is not None:
            environment = {**os.environ, "DISPLAY": display}
            processes.append(
                subprocess.Popen(
                    [manager], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        yield display
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def run_in_process(python: str, name: str, location: str, planes: int) -> dict[str, float]:
    """Run one program with its own virtual screen, and return its measurements."""
    with _screen() as display, Screen(display) as screen, tempfile.TemporaryDirectory() as scratch:
        command = [python, "-m", "benchmarks.viewer_programs", name, location, scratch]
        environment = {**os.environ, "LIBGL_ALWAYS_SOFTWARE": "1", "DISPLAY": display}
        environment["QT_QPA_PLATFORM"] = "xcb"
        screen.set_key_repeat(*REPEAT_MILLISECONDS)
        started = time.time()
        pipe: Any = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            try:
                result = measure(Program(process, screen, name, started), planes)
                assert process.stdin is not None
                process.stdin.close()
                process.wait(TIMEOUT_SECONDS)
            except (ScreenError, subprocess.TimeoutExpired, BrokenPipeError, json.JSONDecodeError) as error:
                raise SystemExit(f"{name} failed: {error}") from error
            finally:
                process.kill()
    return result


def _text(name: str, value: float) -> str:
    if name.startswith("memory"):
        return f"{value / 2**20:.0f} MiB"
    if name.endswith("without change"):
        return f"{value:.0f} of {STEPS}"
    return f"{value:.0f}" if name.endswith("pictures") else f"{value * 1e3:.1f} ms"


def table(results: dict[str, dict[str, float]]) -> str:
    """Return a table of the measurements."""
    programs = list(results)
    width = max(len(name) for name in results[programs[0]]) + 2
    lines = [f"{'':<{width}}" + "".join(f"{name:>14}" for name in programs)]
    for name in results[programs[0]]:
        texts = [_text(name, results[program][name]) for program in programs]
        lines.append(f"{name:<{width}}" + "".join(f"{text:>14}" for text in texts))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    lines.append(f"{os.cpu_count()} processors, load averages {load}")
    return "\n".join(lines)


def main() -> None:
    """Run the programs and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--napari", metavar="PYTHON", help="the interpreter of an environment with napari")
    parser.add_argument("--planes", type=int, default=256)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="the directory of the volume; existing data is used"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch) / "volume.zarr"
        if not directory.exists():
            from benchmarks.viewer_volume import write_volume

            write_volume(directory, options.planes, options.size)
        results = {"zarrfs": run_in_process(sys.executable, "zarrfs", str(directory), options.planes)}
        if options.napari is not None:
            results["napari"] = run_in_process(options.napari, "napari", str(directory), options.planes)
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()
