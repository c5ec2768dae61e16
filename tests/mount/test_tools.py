"""Programs of the system that read a mount. A program that is not installed is skipped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse
from tests.processes import TIMEOUT
from tests.programs import find_program, require_program

pytestmark = needs_fuse

IMAGE = np.random.default_rng(5).integers(0, 60_000, (12, 90, 700), "u2")  # 1.4 MiB
IMAGE[4:8] = 0
PLANE = 5
PLANE_NBYTES = 90 * 700 * 2

PROGRAM = r"""
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Compare a file with a copy of it: by pread at odd offsets, by mmap backwards, and by readv through a pipe. */
int main(int count, char **names) {
    static char left[70001], right[70001];
    struct stat status;
    int a = open(names[1], O_RDONLY), b = open(names[2], O_RDONLY);
    if (a < 0 || b < 0 || fstat(a, &status)) return 2;
    for (off_t at = 0; at < status.st_size; at += 69997) {
        ssize_t n = pread(a, left, sizeof left, at), m = pread(b, right, sizeof right, at);
        if (n != m || memcmp(left, right, n)) return 3;
    }
    char *mapped = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, a, 0);
    char *copied = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, b, 0);
    if (mapped == MAP_FAILED || copied == MAP_FAILED) return 4;
    for (off_t at = status.st_size - 1; at >= 0; at -= 4093)
        if (mapped[at] != copied[at]) return 5;
    if (pread(a, left, 10, status.st_size) != 0) return 6;
    return count == 3 ? 0 : 7;
}
"""

COMMANDS = {
    "cp": "cp --sparse=always {mnt}/image.raw {out}/sparse && cmp {mnt}/image.raw {out}/sparse",
    "tar": "tar -C {mnt} -cf {out}/all.tar . && mkdir {out}/t && tar -C {out}/t -xf {out}/all.tar && "
    "cmp {out}/t/image.npy {out}/expected.npy && cmp {out}/t/sharded.npy {out}/expected.npy",
    "rsync": "rsync -a {mnt}/ {out}/r && rsync -a --checksum --itemize-changes {mnt}/ {out}/r > {out}/changes && "
    "cmp {out}/r/image.npy {out}/expected.npy && ! grep '^>' {out}/changes",
    "find": "find {mnt} -name image.npy -size -3M -newermt 2000-01-01 -readable | grep -q image.npy && "
    "find {mnt} -type f -exec cat {{}} + > /dev/null",
    "file": "file {mnt}/image.npy | grep -qi 'numpy' && file {mnt}/image.tif | grep -q TIFF && "
    "file {mnt}/image.nii | grep -qi nifti",
    "fio": "fio --name=r --filename={mnt}/image.raw --readonly --rw=randread --bs=4k --numjobs=4 --thread "
    "--size={nbytes} --output={out}/fio && "
    "fio --name=m --filename={mnt}/image.raw --readonly --rw=randread --bs=4k --ioengine=mmap --size={nbytes} "
    "--output={out}/fio",
    "dd": "dd if={mnt}/image.raw bs=4k iflag=direct,fullblock status=none | cmp - {out}/expected.raw",
    "split": "split -n 7 {mnt}/image.raw {out}/part. && cat {out}/part.* | cmp - {out}/expected.raw",
    "gzip": "gzip -c {mnt}/image.raw | gzip -dc | cmp - {out}/expected.raw",
    "sha256sum": "test $(sha256sum < {mnt}/image.raw | cut -c1-64) = $(sha256sum < {out}/expected.raw | cut -c1-64)",
    "convert": "convert '{mnt}/image.ome.tif[{plane}]' -endian LSB -depth 16 gray:{out}/plane && "
    "cmp {out}/plane {out}/expected.plane",
    "gdal_translate": "gdal_translate -q -b {band} -of ENVI {mnt}/image.vrt {out}/gdal && "
    "cmp {out}/gdal {out}/expected.plane",
    "vips": "vips rawsave '{mnt}/image.ome.tif[page={plane}]' {out}/vips.raw && "
    "cmp {out}/vips.raw {out}/expected.plane",
    "Rscript": 'Rscript -e \'x <- readBin("{mnt}/image.raw", integer(), {count}, 2, FALSE, "little"); '
    "cat(sum(x))' | grep -qx {total}",
}
"""By the program that must be installed."""


@pytest.fixture(scope="module")
def mountpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("tools")
    root = zarrfs.create_group(directory / "store")
    root.create_array("image", data=IMAGE, chunks=(5, 32, 128))
    root.create_array("sharded", data=IMAGE, chunks=(4, 16, 100), shards=(12, 32, 200))
    with mounted(directory / "store", directory / "mnt", "--cache-size", "4M") as path:
        yield path


@pytest.mark.parametrize("program", COMMANDS)
def test_a_program_of_the_system_reads_the_files(program: str, mountpoint: Path, tmp_path: Path) -> None:
    require_program(program)
    np.save(tmp_path / "expected.npy", IMAGE)
    (tmp_path / "expected.raw").write_bytes(IMAGE.tobytes())
    (tmp_path / "expected.plane").write_bytes(IMAGE[PLANE].tobytes())
    command = COMMANDS[program].format(
        mnt=mountpoint,
        out=tmp_path,
        nbytes=IMAGE.nbytes // 4096 * 4096,
        plane=PLANE,
        band=PLANE + 1,
        count=IMAGE.size,
        total=int(IMAGE.astype(np.int64).sum()),
    )
    completed = subprocess.run(
        ["bash", "-c", f"set -e -o pipefail; {command}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_a_compiled_program_reads_and_maps_the_files(mountpoint: Path, tmp_path: Path) -> None:
    compiler = find_program("cc") or require_program("gcc")
    (tmp_path / "compare.c").write_text(PROGRAM)
    program = tmp_path / "compare"
    subprocess.run([compiler, "-O1", "-o", program, tmp_path / "compare.c"], check=True, timeout=TIMEOUT)
    np.save(tmp_path / "expected.npy", IMAGE)
    for name in ("image.npy", "sharded.npy"):
        command = [program, mountpoint / name, tmp_path / "expected.npy"]
        assert subprocess.run(command, check=False, timeout=TIMEOUT).returncode == 0


def test_numpy_maps_planes_across_the_slowest_dimension(mountpoint: Path) -> None:
    code = (
        "import numpy as np, sys; a = np.load(sys.argv[1], mmap_mode='r'); "
        "print(*[int(a[:, y].astype('i8').sum()) for y in range(0, 90, 7)])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code, mountpoint / "image.npy"], capture_output=True, text=True, check=True
    )
    expected = [int(IMAGE[:, y].astype("i8").sum()) for y in range(0, 90, 7)]
    assert list(map(int, completed.stdout.split())) == expected
