"""The benchmark of ``zarrfs pyramid`` against ome-zarr-py and ngff-zarr: ``python -m benchmarks.pyramids``.

Each contender builds the same levels of the same volume, with its own reader, writer and method of downsampling, in a
process of its own. The contenders alternate. Imports are not measured. The levels of the peers are compared with those
of zarrfs for the same method.

The extra ``zarrfs[test]`` contains the peers. A peer that is not installed is omitted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from benchmarks.writing import default_directory
from zarrfs.synthetic import volume

__all__ = ["CONTENDERS", "Contender", "differences", "run_contender", "write_source"]

CHUNKS = (64, 64, 64)
COMPRESSOR = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}
"""The default of zarr-python 3, which the peers use to write."""

AXES = ("z", "y", "x")
TIMEOUT_SECONDS = 1800

MEASURED = """
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
source, target, levels = sys.argv[1], sys.argv[2], int(sys.argv[3])
{imports}
start, cpu = time.perf_counter(), time.process_time()
{work}
print(json.dumps({{
    "seconds": time.perf_counter() - start,
    "cpu": time.process_time() - cpu,
    "peak": int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024,
}}))
"""

ZARRFS_WORK = """
build_pyramid(source, target, axes="zyx", method="{method}", factors=[2, 2, 2], levels=levels, compressors=None)
"""

NGFF_ZARR_IMPORTS = "import dask.array, ngff_zarr"
NGFF_ZARR_WORK = """
image = ngff_zarr.to_ngff_image(dask.array.from_zarr(source), dims=("z", "y", "x"))
factors = [2**level for level in range(1, levels)]
method = ngff_zarr.Methods.{method}
multiscales = ngff_zarr.to_multiscales(image, scale_factors=factors, method=method, chunks=64)
ngff_zarr.to_ngff_zarr(target, multiscales, version="0.5")
"""

OME_ZARR_IMPORTS = """
import dask.array
from ome_zarr.scale import Methods
from ome_zarr.writer import write_image
"""
OME_ZARR_WORK = """
factors = [dict.fromkeys("zyx", 2**level) for level in range(1, levels)]
write_image(dask.array.from_zarr(source), target, scale_factors=factors, method=Methods.{method}, axes="zyx")
"""


@dataclass(frozen=True)
class Contender:
    """A program that builds a pyramid. ``module`` has to be installed; ``method`` is the equivalent one of zarrfs."""

    name: str
    module: str
    method: str
    imports: str
    work: str

    @property
    def program(self) -> str:
        return MEASURED.format(imports=self.imports, work=self.work)


def _zarrfs(method: str) -> Contender:
    imports = "from zarrfs.tools import build_pyramid"
    return Contender(f"zarrfs, {method}", "zarrfs", method, imports, ZARRFS_WORK.format(method=method))


def _ngff_zarr(method: str, name: str) -> Contender:
    work = NGFF_ZARR_WORK.format(method=name)
    return Contender(f"ngff-zarr, {name}", "ngff_zarr", method, NGFF_ZARR_IMPORTS, work)


def _ome_zarr(method: str, name: str) -> Contender:
    return Contender(
        f"ome-zarr, {name}", "ome_zarr", method, OME_ZARR_IMPORTS, OME_ZARR_WORK.format(method=name)
    )


CONTENDERS = (
    _zarrfs("mean"),
    _ngff_zarr("mean", "DASK_BIN_SHRINK"),
    _ome_zarr("mean", "LOCAL_MEAN"),
    _zarrfs("nearest"),
    _ngff_zarr("nearest", "DASK_IMAGE_NEAREST"),
    _ome_zarr("nearest", "NEAREST"),
    _zarrfs("mode"),
    _ngff_zarr("mode", "DASK_IMAGE_MODE"),
)
"""In groups of the same method. The first one of a group is zarrfs."""


def write_source(path: Path, shape: tuple[int, int, int]) -> None:
    """Write the volume that the pyramids are built from."""
    zarrfs.create_array(
        path, data=volume(shape), chunks=CHUNKS, compressors=COMPRESSOR, dimension_names=AXES, overwrite=True
    )


def run_contender(contender: Contender, source: Path, target: Path, levels: int) -> dict[str, Any]:
    """Build the pyramid in a new process. Returns wall-clock and processor time in seconds, and peak memory in MiB."""
    shutil.rmtree(target, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-c", contender.program, source, target, str(levels)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def level_arrays(location: Path) -> list[np.ndarray[Any, Any]]:
    image = zarrfs.open_group(location)
    datasets = image.attrs["ome"]["multiscales"][0]["datasets"]
    return [np.asarray(zarrfs.open_array(location, item["path"])[...]) for item in datasets]


def differences(expected: Path, found: Path) -> str:
    """Compare the levels of two images."""
    ours, theirs = level_arrays(expected), level_arrays(found)
    if [level.shape for level in ours] != [level.shape for level in theirs]:
        return f"shapes differ: {[level.shape for level in theirs]}"
    distances = [np.abs(a.astype("i8") - b.astype("i8")) for a, b in zip(ours, theirs, strict=True)]
    largest = max(int(distance.max(initial=0)) for distance in distances)
    if not largest:
        return "equal"
    share = sum(int(np.count_nonzero(distance)) for distance in distances[1:]) / sum(
        d.size for d in distances[1:]
    )
    return f"{share:.0%} of the elements differ, by at most {largest}"


def rows(source: Path, folder: Path, levels: int, rounds: int) -> Iterator[str]:
    available = []
    for contender in CONTENDERS:
        if contender.module == "zarrfs" or find_spec(contender.module):
            available.append(contender)
        else:
            print(f"{contender.name}: {contender.module} is not installed", file=sys.stderr)
    measured: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in available}
    for _ in range(rounds):
        for contender in available:
            target = folder / contender.name.replace(", ", "-").replace(" ", "-")
            measured[contender.name].append(run_contender(contender, source, target, levels))
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in measured.items()
    }
    yield "| contender | time | times zarrfs | processor time | peak memory | levels |"
    yield "|---|---|---|---|---|---|"
    for contender in available:
        ours = f"zarrfs, {contender.method}"
        names = (text.replace(", ", "-").replace(" ", "-") for text in (ours, contender.name))
        result = "" if contender.name == ours else differences(*(folder / name for name in names))
        values = medians[contender.name]
        yield (
            f"| {contender.name} | {values['seconds']:.2f} s | {values['seconds'] / medians[ours]['seconds']:.1f} "
            f"| {values['cpu']:.2f} s | {values['peak']:.0f} MiB | {result} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=384, help="the length of the volume along each axis")
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    arguments = parser.parse_args()
    folder = (arguments.directory or Path(default_directory())) / "pyramids"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        source = folder / "source.zarr"
        write_source(source, (arguments.side,) * 3)
        for row in rows(source, folder, arguments.levels, arguments.rounds):
            print(row, flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
