"""Damaged and hostile files of other formats: each is an error that names the file, and nothing is omitted silently."""

from __future__ import annotations

import itertools
import logging
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile

import zarrfs
from zarrfs.errors import IncompleteCopyError, LocationError, UnsupportedError, ZarrError
from zarrfs.files.importing import import_files
from zarrfs.files.recognition import open_node
from zarrfs.files.stored_values import spooled

VALUES = np.arange(3 * 20 * 24, dtype="u2").reshape(3, 20, 24)


def npy(shape: str, descr: str = "<u2") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def nrrd(fields: str, values: bytes = bytes(100)) -> bytes:
    return f"NRRD0004\ntype: uint8\ndimension: 2\n{fields}\n\n".encode() + values


def metaimage(fields: str, name: str = "LOCAL") -> bytes:
    return f"NDims = 2\nDimSize = 5 7\nElementType = MET_UCHAR\n{fields}\nElementDataFile = {name}\n".encode()


HUGE = 99999999999999999999999

DAMAGED = {
    "negative length.npy": npy("(-1, 5)"),
    "boolean length.npy": npy("(True, 5)") + bytes(10),
    "negative length.nrrd": nrrd("sizes: -5 7\nencoding: raw"),
    "huge length.nrrd": nrrd("sizes: 4000000000000 4000000000\nencoding: gzip"),
    "negative skip.nrrd": nrrd("sizes: 5 7\nbyte skip: -100\nencoding: raw"),
    "huge skip.nrrd": nrrd(f"sizes: 5 7\nbyte skip: {HUGE}\nencoding: gzip"),
    "one spacing.nrrd": nrrd("sizes: 5 7\nspacings: 1\nencoding: raw"),
    "one direction.nrrd": nrrd("sizes: 5 7\nspace dimension: 2\nspace directions: (1,0)\nencoding: raw"),
    "header without end.nrrd": b"NRRD0004\n" + b"a" * (1 << 20),
    "negative skip.mha": metaimage("HeaderSize = -5", "negative length.npy"),
    "huge skip.mha": metaimage(f"HeaderSize = {HUGE}", "negative length.npy"),
    "name with NUL.mha": metaimage("", "a\0b"),
    "missing file.mha": metaimage("", "missing.raw"),
    "missing file.nrrd": nrrd("sizes: 5 7\nencoding: raw\ndata file: missing.raw"),
    "huge compressed skip.mha": metaimage(
        f"CompressedData = True\nHeaderSize = {HUGE}", "negative length.npy"
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_header_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "negative length.npy").write_bytes(DAMAGED["negative length.npy"])
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(ZarrError):
        import_files([tmp_path / name], tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_arrays_without_elements_and_of_huge_shapes_need_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy("(0, 1000000000000000000)"))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=(10**9, 10**9), chunks=(1, 1), dtype="u1")
        file.create_dataset("y", shape=(10**9, 10**9), chunks=(1000, 1000), dtype="u1")
        file["y"][1000:1003, 5] = 7
        file.create_dataset("z", shape=(10**18,), dtype="u1")
    import_files([tmp_path / "a.npy"], tmp_path / "npy.zarr", plain=True)
    assert zarrfs.open_array(tmp_path / "npy.zarr").shape == (0, 10**18)
    import_files([tmp_path / "a.h5"], tmp_path / "h5.zarr")
    found = zarrfs.open_group(tmp_path / "h5.zarr")
    assert found["y"][999:1004, 5].tolist() == [0, 7, 7, 7, 0]
    assert [array.nchunks_initialized for array in (found["x"], found["y"], found["z"])] == [0, 1, 0]


def test_too_many_chunks_are_not_listed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=(10**9, 10**9), chunks=(1, 1), dtype="S1", fillvalue=b"x")
    store = open_node(str(tmp_path / "a.h5"), "").store
    with pytest.raises(ZarrError, match="has 1,000,000,000,000,000,000 chunks"):
        next(store.list_prefix("x/c"))


def test_members_that_zarr_cannot_represent_are_not_omitted_silently(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = VALUES
        file.create_dataset("g/ragged", (2,), h5py.vlen_dtype("i4"))
        file["null"] = h5py.Empty("f4")
        for name in ("...", "__x", "zarr.json", "a\\b"):
            file.create_group(f"g/{name}")
    np.savez(tmp_path / "b.npz", x=VALUES, text=np.array("x"))
    invalid = {f"g/invalid name {name}" for name in ("...", "__x", "zarr.json", "a_b")}
    for name, missing in (("a.h5", {"g/ragged", "null"} | invalid), ("b.npz", {"text"})):
        with pytest.raises(IncompleteCopyError, match=r"cannot be copied.*(ragged|text)"):
            import_files([tmp_path / name], tmp_path / "out.zarr")
        assert not (tmp_path / "out.zarr").exists()
        report = import_files([tmp_path / name], tmp_path / f"{name}.zarr", skip_broken=True)
        assert set(report.skipped) == missing
        np.testing.assert_array_equal(zarrfs.open_array(tmp_path / f"{name}.zarr/x")[...], VALUES)


def test_links_to_other_hdf5_files_need_permission(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = VALUES
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["own"] = VALUES[0]
        file["link"] = h5py.ExternalLink("other.h5", "/x")
        layout = h5py.VirtualLayout(VALUES.shape, VALUES.dtype)
        layout[...] = h5py.VirtualSource("other.h5", "x", VALUES.shape)
        file.create_virtual_dataset("virtual", layout)
    with pytest.raises(IncompleteCopyError, match=r"external link .* other\.h5"):
        import_files([tmp_path / "a.h5"], tmp_path / "out.zarr")
    group = open_node(str(tmp_path / "a.h5"), "")
    for name in ("link", "virtual"):
        with pytest.raises(UnsupportedError, match="allow_external"):
            group[name]
    import_files([tmp_path / "a.h5"], tmp_path / "out.zarr", storage_options={"allow_external": True})
    for name in ("link", "virtual"):
        np.testing.assert_array_equal(zarrfs.open_array(tmp_path / f"out.zarr/{name}")[...], VALUES)


def test_damaged_labels_of_hdf5_dimensions_do_not_crash_the_process(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file["x"] = VALUES
        file["x"].dims[0].label = "z"
    content = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(content.replace(b"GCOL", b"XCOL"))
    program = (
        "import sys; from zarrfs.files.importing import import_files; from zarrfs.tools import from_hdf5\n"
        "import_files([sys.argv[1]], sys.argv[2]); from_hdf5(sys.argv[1], sys.argv[2] + '2')"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.h5"), str(tmp_path / "out.zarr")]
    subprocess.run(command, check=True, timeout=300)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "out.zarr/x")[...], VALUES)


def test_an_object_header_of_hdf5_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(30):
            file[f"g/{number}"] = VALUES[0]
    content = (tmp_path / "a.h5").read_bytes()
    for magic in (b"HEAP", b"TREE", b"SNOD"):
        for count in (1, 2):
            (tmp_path / "b.h5").write_bytes(content.replace(magic, b"XXXX", count))
            for function in (lambda file, out: import_files([file], out), zarrfs.tools.from_hdf5):
                with pytest.raises(ZarrError):
                    function(tmp_path / "b.h5", tmp_path / f"{magic!r} {count} {function}.zarr")


@pytest.mark.parametrize("damage", ["truncated", "circular", "many tags"])
def test_a_damaged_chain_of_tiff_pages_is_an_error(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, VALUES, imagej=True, metadata={"axes": "ZYX"}, compression="zlib")
    with tifffile.TiffFile(path) as file:
        offsets = [int(page.offset) for page in file.pages]
        tags = len(file.pages.first.tags)
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        del content[offsets[1] + 10 :]
    elif damage == "circular":
        content[offsets[0] + 2 + tags * 12 :][:4] = b""
        at = offsets[0] + 2 + tags * 12
        content[at : at + 4] = offsets[0].to_bytes(4, sys.byteorder)
    else:
        content[offsets[1] : offsets[1] + 2] = b"\xff\xff"
    path.write_bytes(content)
    with pytest.raises(LocationError, match="page"):
        import_files([path], tmp_path / "out.zarr")


@pytest.mark.parametrize("name", ["../other.tif", "/etc/hosts", "missing.tif", "pipe.tif"])
def test_parts_of_an_ome_tiff_in_other_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    tifffile.imwrite(tmp_path / "other.tif", VALUES[1], metadata=None)
    os.mkfifo(tmp_path / "images/pipe.tif")
    file = tmp_path / "images/a.ome.tif"
    _write_part(file, name)
    with pytest.raises(LocationError, match=name):
        import_files([file], tmp_path / "out.zarr")
    tifffile.imwrite(tmp_path / "images/b.tif", VALUES[1], metadata=None)
    _write_part(file, "b.tif")
    import_files([file], tmp_path / "out.zarr")
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "out.zarr/0")[...], VALUES[:2])


def _write_part(path: Path, other: str) -> None:
    """Write the first plane of an OME-TIFF whose second plane is in another file."""
    planes = "".join(
        f'<TiffData IFD="0" FirstZ="{z}" PlaneCount="1"><UUID FileName="{name}">urn:uuid:{z}</UUID></TiffData>'
        for z, name in enumerate((path.name, other))
    )
    document = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:0">'
        '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="24" SizeY="20" '
        f'SizeZ="2" SizeC="1" SizeT="1">{planes}</Pixels></Image></OME>'
    )
    tifffile.imwrite(path, VALUES[0], description=document, metadata=None)


def test_a_tiff_strip_that_expands_beyond_its_size_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as writer:
        bomb = zlib.compress(bytes(1 << 24), 9)
        writer.write(iter([bomb]), shape=(20, 24), dtype="u2", compression="zlib", metadata=None)
    monkeypatch.setattr("zarrfs.files.tiff.checks.MAX_SEGMENT_NBYTES", 1 << 20)
    decoded: list[int] = []
    decompress = zlib.decompress
    monkeypatch.setattr("zlib.decompress", lambda data: decoded.append(1) or decompress(data))
    with pytest.raises(ZarrError, match="decodes to more than the expected 960 bytes"):
        open_node(str(path), "0")[...]
    assert not decoded


def test_a_tiff_segment_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, VALUES[0], compression="zlib", metadata=None)
    with tifffile.TiffFile(path) as file:
        tag = file.pages.first.tags["StripByteCounts"]
    content = bytearray(path.read_bytes())
    content[tag.offset + 8 : tag.offset + 12] = (1 << 20).to_bytes(4, sys.byteorder)
    path.write_bytes(content)
    with pytest.raises(ZarrError, match="the file ends after"):
        open_node(str(path), "0")[...]


def test_damaged_compressed_members_of_npz_are_errors(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=VALUES)
    content = (tmp_path / "a.npz").read_bytes()
    for start, value in itertools.product(range(60, len(content) - 120, 40), (0, 0xFF)):
        damaged = bytearray(content)
        damaged[start : start + 8] = bytes([value] * 8)
        (tmp_path / "a.npz").write_bytes(damaged)
        with pytest.raises(LocationError, match=r"NumPy archive|npy"):
            open_node(str(tmp_path / "a.npz"), "")


@pytest.mark.parametrize("suffix", [".npz", ".nrrd"])
def test_a_compression_bomb_does_not_fill_the_volume(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", npy("(2097152,)", "|u1") + bytes(1 << 21))
    else:
        path.write_bytes(nrrd("sizes: 2048 1024\nencoding: gzip", zlib.compress(bytes(1 << 21), wbits=31)))
    assert open_node(str(path), "")
    usage = type("usage", (), {"free": (1 << 28) + (1 << 20)})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(LocationError, match=r"bytes are free .*TMPDIR"):
        open_node(str(path), "")


def test_spooling_stops_at_the_declared_size() -> None:
    class Endless:
        def read(self, size: int) -> bytes:
            return bytes(size)

    fd = spooled(Endless(), 3_000_000)
    try:
        assert os.fstat(fd).st_size == 3_000_000
    finally:
        os.close(fd)


def test_log_records_of_libraries_are_safe_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from zarrfs.cli.main import run

    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    with pytest.raises(SystemExit):
        run(["info", str(tmp_path)])
    logger = logging.Logger("library")
    logger.error("a\x1b]0;title\x07\nzarrfs: forged")
    lines = capfd.readouterr().err.splitlines()
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("zarrfs: forged") for line in lines)
    assert any("library" in line and "forged" in line for line in lines)
