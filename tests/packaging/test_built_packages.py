"""The Debian package and the bundle of the viewer, unpacked in an empty directory.

They take minutes to build. The tests use those in the directory ``$ZARRFS_PACKAGES``, into which packaging/build.sh has
built them, and are skipped without it.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import h5py
import nibabel
import nrrd
import numpy as np
import pytest
from PIL import Image
from zarrfs_viewer.desktop import TARGETS

import zarrfs
from tests.engine.stores.every_store import STORES, stop_all_servers
from tests.mount.mounted import needs_fuse
from tests.processes import output_of
from tests.programs import require_program
from zarrfs.cli.main import COMMANDS

VARIABLE = "ZARRFS_PACKAGES"

DEBIAN_FILES = {
    "/usr/bin/zarrfs",
    "/usr/bin/zarrfs-viewer",
    "/usr/sbin/mount.zarrfs",
    "/usr/sbin/mount.fuse.zarrfs",
    "/usr/lib/systemd/user/zarrfs@.service",
    "/usr/share/man/man8/mount.zarrfs.8.gz",
    "/usr/share/man/man1/zarrfs.1.gz",
    "/usr/share/man/man1/zarrfs-viewer.1.gz",
    "/usr/share/doc/zarrfs/copyright",
    "/usr/share/doc/zarrfs/changelog.gz",
    *(f"/usr/share/man/man1/zarrfs-{name}.1.gz" for name in COMMANDS),
    *(f"/usr/share/{target}" for target in TARGETS.values()),
    *(f"/usr/share/bash-completion/completions/{name}" for name in ("zarrfs", "zarrfs-viewer")),
    *(f"/usr/share/zsh/vendor-completions/_{name}" for name in ("zarrfs", "zarrfs-viewer")),
    *(f"/usr/share/fish/vendor_completions.d/{name}.fish" for name in ("zarrfs", "zarrfs-viewer")),
}


def package(pattern: str) -> Path:
    """Return the package in ``$ZARRFS_PACKAGES`` with this version and name."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        pytest.skip(f"{VARIABLE} is not set to the directory of packages of packaging/build.sh")
    found = sorted(Path(directory).glob(pattern))
    if not found:
        pytest.skip(f"{directory} does not contain {pattern}")
    return found[0]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program in an almost empty environment, and return what it prints."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "QT_QPA_PLATFORM": "offscreen",
        "HOME": str(cwd or "/nonexistent"),
    }
    return output_of(command, cwd=cwd, env=environment)


@pytest.fixture(scope="module")
def debian_package() -> Path:
    require_program("dpkg-deb")
    return package(f"zarrfs_{zarrfs.__version__}_*.deb")


@pytest.fixture(scope="module")
def debian_root(debian_package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    run("dpkg-deb", "-x", debian_package, root)
    return root


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the bundle, unpacked."""
    archive = package(f"zarrfs-viewer-{zarrfs.__version__}-*.tar.gz")
    root = tmp_path_factory.mktemp("bundle")
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data")
    return root / "zarrfs-viewer" / "zarrfs-viewer"


@pytest.fixture(params=["Debian package", "bundle"])
def zarrfs_command(request: pytest.FixtureRequest) -> list[str | Path]:
    """The command ``zarrfs`` of a package."""
    if request.param == "bundle":
        return [request.getfixturevalue("bundle"), "-m", "zarrfs"]
    return [request.getfixturevalue("debian_root") / "usr" / "bin" / "zarrfs"]


@pytest.fixture(scope="module")
def _servers() -> Iterator[None]:
    yield
    stop_all_servers()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    values = np.arange(3 * 40 * 50, dtype="u2").reshape(3, 40, 50)
    zarrfs.create_array(tmp_path / "image.zarr", data=values, chunks=(1, 20, 20), compressors="zstd")
    return tmp_path / "image.zarr"


def test_the_debian_package_lists_its_files(debian_package: Path) -> None:
    listing = run("dpkg-deb", "-c", debian_package).splitlines()
    names = {line.split(" -> ")[0].split(maxsplit=5)[5].lstrip(".") for line in listing}
    assert DEBIAN_FILES - names == set()
    elsewhere = {
        name for name in names if not name.endswith("/") and not name.startswith(("/usr/", "/opt/zarrfs/"))
    }
    assert elsewhere == set()
    assert {line.split()[1] for line in listing} == {"root/root"}


def test_the_debian_package_declares_its_requirements(debian_package: Path) -> None:
    control = run("dpkg-deb", "-f", debian_package)
    assert f"Version: {zarrfs.__version__}\n" in control
    assert "Depends: python3 (>= 3." in control
    assert "fuse3" in control


@needs_fuse
def test_the_programs_of_the_debian_package_run_below_another_root(
    debian_root: Path, image: Path, tmp_path: Path
) -> None:
    program = debian_root / "usr" / "bin" / "zarrfs"
    version = run(program, "--version", cwd=tmp_path)
    assert f"zarrfs, version {zarrfs.__version__}" in version
    assert str(debian_root) in version, "the native library is not that of the package"
    (tmp_path / "files").mkdir()
    run(program, "mount", image, tmp_path / "files", cwd=tmp_path)
    try:
        raw = next((tmp_path / "files").glob("*.raw"))
        assert np.fromfile(raw, "<u2").tolist() == list(range(6000))
    finally:
        run(program, "umount", tmp_path / "files", cwd=tmp_path)


@pytest.mark.parametrize("kind", ["debian_root", "bundle"])
def test_the_viewers_take_a_screenshot(
    kind: str, image: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = request.getfixturevalue(kind)
    viewer = found / "usr" / "bin" / "zarrfs-viewer" if kind == "debian_root" else found
    run(viewer, image, "--screenshot", tmp_path / "picture.png", "--size", "900x700", cwd=tmp_path)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@needs_fuse
def test_the_bundle_runs_the_other_processes_of_the_viewer(bundle: Path, image: Path, tmp_path: Path) -> None:
    """The viewer starts mounts with ``sys.executable -m zarrfs.mount``, and sys.executable is the bundle's program."""
    (tmp_path / "files").mkdir()
    run(bundle, "-m", "zarrfs", "mount", image, tmp_path / "files", cwd=tmp_path)
    try:
        raw = next((tmp_path / "files").glob("*.raw"))
        assert np.fromfile(raw, "<u2").tolist() == list(range(6000))
    finally:
        run(bundle, "-m", "zarrfs", "umount", tmp_path / "files", cwd=tmp_path)


PLANE = (np.arange(60 * 50) % 251).astype("u1").reshape(60, 50)

FILES: dict[str, Callable[[Path], object]] = {
    "compressed.tif": lambda path: Image.fromarray(PLANE).save(path, compression="tiff_lzw"),
    "plane.png": lambda path: Image.fromarray(PLANE).save(path),
    "volume.nii.gz": lambda path: nibabel.save(nibabel.Nifti1Image(PLANE.T, np.eye(4)), path),
    "volume.nrrd": lambda path: nrrd.write(str(path), PLANE.T),
}
"""Files that different extras read."""


@needs_fuse
def test_the_packages_contain_the_extras(zarrfs_command: list[str | Path], tmp_path: Path) -> None:
    """Nothing can be added to them with pip."""
    findings = json.loads(run(*zarrfs_command, "doctor", "--json", cwd=tmp_path))["findings"]
    found = {finding["name"]: finding for finding in findings}
    assert found["native reader and writer"]["ok"]
    assert "PyQt6" in found["viewer"]["found"]
    missing = {text.split(" (needs ")[0] for text in found["other extras"]["found"].split("; ")}
    assert missing - {"dask"} == {"xarray"}


@pytest.mark.usefixtures("_servers")
@pytest.mark.parametrize("store_name", ["s3", "azure", "fsspec, gcs", "fsspec, sftp", "redis", "lmdb"])
def test_the_packages_read_stores(store_name: str, zarrfs_command: list[str | Path], tmp_path: Path) -> None:
    with closing(STORES[store_name](tmp_path)) as store:
        zarrfs.create_array(store, data=PLANE, chunks=(25, 25))
        location = getattr(store, "_original_url", store.url)
        options = getattr(store, "_storage_options", {})
    texts = [f"--storage-option={name}={value}" for name, value in options.items()]
    run(*zarrfs_command, "cat", location, *texts, "-o", tmp_path / "plane.npy", cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "plane.npy"), PLANE)


@pytest.mark.parametrize("name", FILES)
def test_the_packages_import_files(name: str, zarrfs_command: list[str | Path], tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    run(*zarrfs_command, "import", "--plain", tmp_path / name, tmp_path / "copy.zarr", cwd=tmp_path)
    copy = zarrfs.open(tmp_path / "copy.zarr")
    array = copy if isinstance(copy, zarrfs.Array) else next(array for _, array in copy.arrays())
    np.testing.assert_array_equal(array[...].squeeze(), PLANE)


def test_the_packages_copy_hdf5_files(zarrfs_command: list[str | Path], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plane"] = PLANE
    run(*zarrfs_command, "copy", tmp_path / "a.h5", tmp_path / "copy.zarr", cwd=tmp_path)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "copy.zarr", path="plane")[...], PLANE)


@pytest.mark.parametrize("codec", ["pcodec", "zfpy"])
def test_the_packages_decode(codec: str, zarrfs_command: list[str | Path], tmp_path: Path) -> None:
    expected = PLANE.astype("f4")
    zarrfs.create_array(tmp_path / "a.zarr", data=expected, zarr_format=2, compressors={"id": codec})
    run(*zarrfs_command, "cat", tmp_path / "a.zarr", "-o", tmp_path / "plane.npy", cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "plane.npy"), expected)
