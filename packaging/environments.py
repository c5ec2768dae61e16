"""Installs zarrfs with each extra alone in a new environment, and uses what the extra is for.

    packaging/environments.py [--python VERSION] [--lowest] [EXTRA...]      default: all extras, and none ("-")

    --python VERSION    the interpreter of the environments, as for uv: 3.12, or a path
    --lowest            install the lowest versions that pyproject.toml permits

Each environment contains only the requirements of one extra, so that a use fails if zarrfs imports a package of
another extra. It needs uv, which packaging/setup.sh installs into .venv. Exit code 1 if an environment fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

UV = shutil.which("uv", path=os.pathsep.join([str(ROOT / ".venv/bin"), os.environ.get("PATH", "")]))

REFUSED = """
try:
    zarrfs.open({location!r}, storage_options={options!r})
except zarrfs.ZarrError as error:
    assert "pip install" not in str(error), error
"""
"""A server that does not exist is an error, but not for lack of a package."""

CODEC = """
data = numpy.arange(1000, dtype={dtype!r})
zarrfs.create_array("a.zarr", data=data, chunks=100, {options})
assert numpy.array_equal(zarrfs.open_array("a.zarr")[...], data)
"""

EXPORT = """
from zarrfs.files.exporting import export
from zarrfs.files.importing import import_files
zarrfs.create_array("a.zarr", data=numpy.arange(60, dtype="u1").reshape(3, 4, 5))
export("a.zarr", {name!r})
import_files([{found!r}], "b.zarr")
"""

HTTP = """
import functools, http.server, threading
zarrfs.create_array("a.zarr", data=numpy.arange(10))
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=".")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert zarrfs.open_array(f"http://127.0.0.1:{server.server_port}/a.zarr")[3] == 3
server.shutdown()
"""

XARRAY = """
import xarray
array = zarrfs.create_group("g.zarr").create_array("a", data=numpy.arange(10), dimension_names=["x"])
assert int(xarray.open_dataset("g.zarr", engine="zarrfs").a[3]) == 3
"""

DASK = """
import zarrfs.dask
array = zarrfs.create_array("a.zarr", data=numpy.arange(100), chunks=10)
assert int(zarrfs.dask.from_zarr("a.zarr").sum().compute(scheduler="synchronous")) == 4950
import distributed
"""

VIEWER = """
import os, subprocess, sys
zarrfs.create_array("a.zarr", data=numpy.arange(600, dtype="u1").reshape(20, 30))
command = [sys.executable, "-m", "zarrfs_viewer", "a.zarr", "--screenshot", "a.png", "--size", "700x500"]
subprocess.run(command, check=True, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})
assert open("a.png", "rb").read(4) == b"\\x89PNG"
"""

NONE = """
import subprocess, sys
zarrfs.create_array("a.zarr", data=numpy.arange(1000).reshape(10, 100), chunks=(5, 50), shards=(10, 100))
assert zarrfs.open("a.zarr")[3, 4] == 304
for arguments in (["--version"], ["--help"], ["info", "a.zarr"], ["cat", "a.zarr[2]", "--as", "csv"]):
    subprocess.run([sys.executable, "-m", "zarrfs", *arguments], check=True, stdout=subprocess.DEVNULL)
import zarrfs.mount, zarrfs.codecs, zarrfs.storage, zarrfs.tools, zarrfs.tensorstore
import zarrfs.files.importing, zarrfs.files.exporting
"""

TIFF = """
import tifffile
from zarrfs.files.importing import import_files
tifffile.imwrite("a.tif", numpy.arange(600, dtype="u1").reshape(20, 30), compression="lzw")
import_files(["a.tif"], "b.zarr")
assert zarrfs.open("b.zarr/0")[1, 2] == 32
"""

NGFF = """
from zarrfs.tools import build_pyramid
from zarrfs.ngff import check_node
zarrfs.create_array("a.zarr", data=numpy.arange(600, dtype="u1").reshape(20, 30))
build_pyramid("a.zarr", "b.zarr")
assert check_node(zarrfs.open_group("b.zarr")).valid
"""

PARQUET = """
import json, os, pyarrow, pyarrow.parquet
document = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "compressor": None, "fill_value": 0,
    "order": "C", "filters": None}
os.makedirs("a.parq/x")
with open("a.parq/.zmetadata", "w") as file:
    json.dump({"metadata": {".zgroup": {"zarr_format": 2}, "x/.zarray": document}, "record_size": 1}, file)
pyarrow.parquet.write_table(pyarrow.table({"raw": [b"ab"]}), "a.parq/x/refs.0.parq")
assert zarrfs.open("a.parq/x")[...].tolist() == [97, 98]
"""

USES = {
    "-": NONE,
    "ngff": NGFF,
    "remote": CODEC.format(dtype="i4", options="").replace('"a.zarr"', '"memory://a.zarr"'),
    "http": HTTP,
    "s3": REFUSED.format(
        location="s3://bucket/a.zarr", options={"anon": True, "endpoint_url": "http://127.0.0.1:9"}
    ),
    "gcs": "import os; os.environ['GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT'] = 'false'\n"
    + REFUSED.format(
        location="gs://bucket/a.zarr", options={"token": "anon", "endpoint_url": "http://127.0.0.1:9"}
    ),
    "azure": REFUSED.format(
        location="abfs://container/a.zarr", options={"account_name": "none", "account_host": "127.0.0.1:9"}
    ),
    "sftp": REFUSED.format(location="sftp://me:secret@127.0.0.1:9/a.zarr", options={}),
    "lmdb": CODEC.format(dtype="i4", options="").replace('"a.zarr"', '"a.lmdb"'),
    "icechunk": CODEC.format(dtype="i4", options="").replace('"a.zarr"', '"icechunk:a"'),
    "parquet": PARQUET,
    "redis": REFUSED.format(location="redis://127.0.0.1:9", options={}),
    "mongodb": REFUSED.format(location="mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=100", options={}),
    "hdf5": EXPORT.format(name="a.h5", found="a.h5"),
    "nrrd": EXPORT.format(name="a.nrrd", found="a.nrrd"),
    "nifti": EXPORT.format(name="a.nii", found="a.nii"),
    "images": EXPORT.format(name="plane.png", found="plane*.png"),
    "pcodec": CODEC.format(dtype="i4", options='zarr_format=2, compressors=None, filters=[{"id": "pcodec"}]'),
    "msgpack": 'zarrfs.create_array("a.zarr", data=numpy.array(["a", 1], object), zarr_format=2, '
    'dtype=object, object_codec={"id": "msgpack2"})\nassert list(zarrfs.open("a.zarr")[...]) == ["a", 1]',
    "zfp": CODEC.format(
        dtype="f4", options='zarr_format=2, compressors={"id": "zfpy", "mode": 4, "tolerance": 0.0}'
    ),
    "xarray": XARRAY,
    "dask": DASK,
    "movie": "import imageio_ffmpeg; imageio_ffmpeg.get_ffmpeg_exe()",
    "keyring": "import keyring, zarrfs_viewer.url_credentials",
    "tiff": TIFF,
    "colormaps": "import cmap, zarrfs_viewer.state.luts",
    "roi": "import roifile, zarrfs_viewer.export.imagej_rois",
    "viewer": VIEWER,
}
"""Extra -> a program. It runs in an empty directory."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--lowest", action="store_true")
    parser.add_argument("extras", nargs="*")
    arguments = parser.parse_args()
    if UV is None:
        print("uv is not installed; packaging/setup.sh installs it", file=sys.stderr)
        return 2
    unknown = set(arguments.extras) - set(USES)
    if unknown:
        print(f"unknown extras {sorted(unknown)}; expected some of {sorted(USES)}", file=sys.stderr)
        return 2
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, str(ROOT)])
        (wheel,) = Path(folder).glob("*.whl")
        for extra in arguments.extras or USES:
            error = check(extra, wheel, arguments.python, arguments.lowest)
            print(f"{extra:<10} {'works' if error is None else 'FAILS'}", flush=True)
            if error is not None:
                failed.append(extra)
                print(error, flush=True)
    return 1 if failed else 0


def check(extra: str, wheel: Path, python: str, lowest: bool) -> str | None:
    """Return the output of the program of an extra if it fails, or None."""
    assert UV is not None
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        requirement = str(wheel) if extra == "-" else f"{wheel}[{extra}]"
        resolution = ["--resolution", "lowest-direct"] if lowest else []
        directory = Path(folder, "work")
        directory.mkdir()
        program = f"import numpy, zarrfs\n{USES[extra]}"
        try:
            run([UV, "venv", "--quiet", "--python", python, str(environment)])
            interpreter = str(environment / "bin/python")
            run([UV, "pip", "install", "--quiet", "--python", interpreter, *resolution, requirement])
            run([interpreter, "-c", program], directory)
        except subprocess.CalledProcessError as error:
            return str(error.stdout)
        except subprocess.TimeoutExpired as error:
            return str(error)
    return None


def run(command: list[str], directory: Path | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=600,
    )


if __name__ == "__main__":
    sys.exit(main())
