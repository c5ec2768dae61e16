"""Writing through real mounts with ordinary programs."""

from __future__ import annotations

import json
import mmap
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import BINDINGS, is_library_missing, mounted, needs_fuse, zarrfs_command
from tests.mount.writing.endurance import LAYOUTS, make_store, random_writes, stored_differences
from tests.processes import TIMEOUT
from tests.programs import find_program, require_program
from zarrfs.mount import unmount
from zarrfs.mount.process.mount_table import is_mounted

pytestmark = needs_fuse


@pytest.fixture
def store(tmp_path: Path) -> Path:
    location = tmp_path / "a.zarr"
    root = zarrfs.create_group(location)
    root.create_array("img", data=np.arange(60 * 70, dtype="<u2").reshape(60, 70), chunks=(16, 16))
    root.create_group("inner")
    return location


@pytest.fixture
def mount(store: Path, tmp_path: Path) -> Iterator[Path]:
    with mounted(store, tmp_path / "mnt", "--rw") as mnt:
        yield mnt


def run(*command: str | Path) -> str:
    if command[0] in ("cp", "dd"):
        require_program(str(command[0]))
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("binding", BINDINGS)
def test_every_binding_writes_in_place_and_creates(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(store, tmp_path / "mnt", "--rw", "-o", "use_ino", binding=binding) as mnt:
        view = np.memmap(mnt / "img.raw", "<u2", "r+", shape=(60, 70))
        view[3:50, 5:9] = 7
        view.flush()
        del view
        np.save(mnt / "new.npy", np.arange(1000.0))
        np.save(mnt / "new.npy", np.arange(500.0))
        np.testing.assert_array_equal(np.load(mnt / "new.npy"), np.arange(500.0))
        inode = os.stat(mnt / "new.npy").st_ino
        assert inode not in (0, os.stat(mnt / "img.npy").st_ino)
        os.rename(mnt / "new.npy", mnt / "inner" / "moved.npy")
        assert os.stat(mnt / "inner" / "moved.npy").st_ino == inode
        os.mkdir(mnt / "group")
        shutil.rmtree(mnt / "group")
        assert sorted(os.listdir(mnt)) == [".group.json", "img.json", "img.npy", "img.raw", "inner"]
    expected = np.arange(60 * 70, dtype="<u2").reshape(60, 70)
    expected[3:50, 5:9] = 7
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], expected)
    np.testing.assert_array_equal(zarrfs.open_array(store, "inner/moved")[...], np.arange(500.0))


def test_numpy_maps_a_file_for_writing(mount: Path, store: Path) -> None:
    array = np.load(mount / "img.npy", mmap_mode="r+")
    array[10:20] += 1000
    array.flush()
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], array)
    np.testing.assert_array_equal(np.load(mount / "img.npy"), array)


def test_other_files_and_handles_see_written_bytes_at_once(mount: Path) -> None:
    with open(mount / "img.npy", "rb", buffering=0) as reader, open(mount / "img.raw", "r+b", 0) as writer:
        header = os.path.getsize(mount / "img.npy") - os.path.getsize(mount / "img.raw")
        for number in range(20):
            reader.seek(header + 100)
            reader.read(1000)
            writer.seek(100 + number)
            writer.write(bytes([200 + number]))
            reader.seek(header + 100 + number)
            assert reader.read(1) == bytes([200 + number])


@pytest.mark.parametrize("is_fortran", [False, True])
def test_a_new_file_is_mapped_and_filled(is_fortran: bool, mount: Path, store: Path) -> None:
    data = np.arange(90_000, dtype="<i4").reshape(300, 300)
    mapped = np.lib.format.open_memmap(
        str(mount / "new.npy"), "w+", "<i4", data.shape, fortran_order=is_fortran
    )
    mapped[...] = data
    del mapped
    os.sync()
    np.testing.assert_array_equal(np.load(mount / "new.npy"), data)
    with open(mount / "new.npy", "rb") as file:
        os.fsync(file.fileno())
    np.testing.assert_array_equal(zarrfs.open_array(store, "new")[...], data)


def test_dd_writes_in_place(mount: Path, store: Path, tmp_path: Path) -> None:
    plain = bytearray((mount / "img.raw").read_bytes())
    block = os.urandom(3 * 512)
    (tmp_path / "block").write_bytes(block)
    run("dd", f"if={tmp_path / 'block'}", f"of={mount / 'img.raw'}", "bs=512", "seek=2", "conv=notrunc,fsync")
    plain[1024 : 1024 + len(block)] = block
    assert bytes(zarrfs.open_array(store, "img").read_bytes(0, len(plain))) == plain


def test_a_shared_mapping_and_pwrite_of_one_descriptor(mount: Path, store: Path) -> None:
    size = os.path.getsize(mount / "img.raw")
    descriptor = os.open(mount / "img.raw", os.O_RDWR)
    with mmap.mmap(descriptor, size) as mapping:
        mapping[0:3] = b"abc"
        mapping.flush()
        os.pwrite(descriptor, b"xyz", 10)
        assert mapping[10:13] == b"xyz"
        mapping[size - 1 : size] = b"\xff"
    os.close(descriptor)
    content = bytes(zarrfs.open_array(store, "img").read_bytes(0, size))
    assert (content[0:3], content[10:13], content[-1]) == (b"abc", b"xyz", 0xFF)


def test_a_c_program_writes(mount: Path, store: Path, tmp_path: Path) -> None:
    compiler = find_program("cc") or require_program("gcc")
    (tmp_path / "p.c").write_text(
        """
        #include <fcntl.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(int n, char **v) {
            int f = open(v[1], O_RDWR);
            if (f < 0 || pwrite(f, "hello", 5, 4001) != 5) return 1;
            char *m = mmap(0, 8400, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
            if (m == MAP_FAILED || memcmp(m + 4001, "hello", 5)) return 2;
            memcpy(m + 8000, "world", 5);
            if (msync(m, 8400, MS_SYNC) || fsync(f) || munmap(m, 8400)) return 3;
            return close(f) ? 4 : 0;
        }
        """
    )
    run(compiler, "-o", tmp_path / "p", tmp_path / "p.c")
    run(tmp_path / "p", mount / "img.raw")
    content = bytes(zarrfs.open_array(store, "img").read_bytes(0, 8400))
    assert (content[4001:4006], content[8000:8005]) == (b"hello", b"world")


def test_programs_change_the_hierarchy(mount: Path, store: Path, tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 255, (300, 500), "u1")
    np.save(tmp_path / "new.npy", data)
    run("cp", "-p", tmp_path / "new.npy", mount / "inner")
    np.testing.assert_array_equal(zarrfs.open_array(store, "inner/new")[...], data)
    run("mkdir", "-p", mount / "x" / "y")
    run("mv", mount / "inner" / "new.npy", mount / "x" / "y" / "moved.npy")
    assert "new.raw" not in os.listdir(mount / "inner")
    np.testing.assert_array_equal(np.load(mount / "x" / "y" / "moved.npy"), data)
    run("mv", mount / "x", mount / "z")
    run("rm", mount / "z" / "y" / "moved.npy")
    assert sorted(os.listdir(mount / "z" / "y")) == [".group.json", "moved.json", "moved.raw"]
    run("rm", "-r", mount / "z")
    assert "z" not in os.listdir(mount)
    assert sorted(zarrfs.open_group(store)) == ["img", "inner"]
    run("truncate", "-s", str(70 * 2 * 80), mount / "img.raw")
    assert zarrfs.open_array(store, "img").shape == (80, 70)
    assert np.load(mount / "img.npy").shape == (80, 70)
    failed = subprocess.run(["truncate", "-s", "33", mount / "img.raw"], capture_output=True, check=False)
    assert failed.returncode


@pytest.mark.parametrize("redirection", [">", ">>"])
def test_several_programs_write_to_the_descriptor_of_a_shell(
    redirection: str, mount: Path, store: Path, tmp_path: Path
) -> None:
    bash = require_program("bash")
    old = zarrfs.open_array(store, "img")[...]
    data = np.random.default_rng(0).integers(0, 60_000, (100, 70), "u2")
    np.save(tmp_path / "new.npy", data)
    for source, name in ((data.tobytes(), "img.raw"), ((tmp_path / "new.npy").read_bytes(), "new.npy")):
        (tmp_path / "1").write_bytes(source[:5001])
        (tmp_path / "2").write_bytes(source[5001:])
        command = f"{{ cat '{tmp_path}/1'; cat '{tmp_path}/2'; }} {redirection} '{mount}/{name}'"
        assert run(bash, "-ec", command) == ""
    np.testing.assert_array_equal(zarrfs.open_array(store, "new")[...], data)
    expected = data if redirection == ">" else np.concatenate([old, data])
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], expected)


def test_processes_inherit_the_descriptor_of_a_file(mount: Path, store: Path) -> None:
    data = np.random.default_rng(0).integers(0, 60_000, (100, 70), "u2").tobytes()
    program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    with open(mount / "img.raw", "wb", buffering=0) as file:
        file.write(data[:2800])
        os.close(os.dup(file.fileno()))
        subprocess.run([sys.executable, "-c", program], input=data[2800:7000], stdout=file, check=True)
        with open(mount / "img.raw", "rb") as reader:
            assert reader.read() == data[:7000]
        file.write(data[7000:])
    assert zarrfs.open_array(store, "img")[...].tobytes() == data


@pytest.mark.parametrize("binding", BINDINGS)
def test_open_files_that_are_removed_or_replaced(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(store, tmp_path / "mnt", "--rw", binding=binding) as mnt:
        with tempfile.TemporaryFile(dir=mnt, buffering=0) as file:
            file.write(b"0123456789")
            file.truncate(8)
            assert file.seek(0, os.SEEK_END) == 8
            file.seek(2)
            assert file.read() == b"234567"
        with open(mnt / "removed.npy", "wb", buffering=0) as file:
            file.write(b"\x93NUMPY")
            os.unlink(mnt / "removed.npy")
            os.fsync(file.fileno())
        np.save(mnt / "new.npy", np.arange(4200, dtype="<u2").reshape(60, 70) + 1)
        mapped = np.load(mnt / "img.npy", mmap_mode="r")
        with open(mnt / "img.raw", "rb", buffering=0) as reader, open(mnt / "img.npy", "rb") as same:
            os.rename(mnt / "new.npy", mnt / "img.npy")
            os.posix_fadvise(same.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            np.testing.assert_array_equal(mapped.ravel(), np.arange(1, 4201))
            assert reader.read(4) == b"\x01\x00\x02\x00"
            del mapped
            for name in ("img.npy", "img.json", "img.raw"):
                os.unlink(mnt / name)
            os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with pytest.raises(OSError, match="Stale file handle"):
                os.pread(reader.fileno(), 10, 4000)
        assert sorted(os.listdir(mnt)) == [".group.json", "inner"]
    assert sorted(zarrfs.open_group(store)) == ["inner"]


def make_tree(location: Path) -> zarrfs.Group:
    root = zarrfs.create_group(location)
    tree = root.create_group("tree", attributes={"n": [1], "text": "1"})
    data = np.arange(60 * 70, dtype="<u2").reshape(60, 70)
    tree.create_array("img", data=data, chunks=(16, 16), attributes={"a": {"b": 2}, "text": "1"})
    deep = tree.create_group("deep", attributes={"deep": True})
    deep.create_array("x", data=np.arange(10.0), chunks=(3,), fill_value=np.nan)
    tree.create_array(
        "empty", shape=(0, 5), dtype="i4", chunks=(2, 5), fill_value=7, dimension_names=["a", "b"]
    )
    tree.create_array("sharded", data=np.ones((8, 8), "<f4"), chunks=(2, 2), shards=(4, 4))
    tree.create_array("scalar", data=np.array(3.5))
    return tree


def assert_equal_trees(found: zarrfs.Group, expected: zarrfs.Group) -> None:
    assert dict(found.attrs) == dict(expected.attrs)
    assert sorted(found) == sorted(expected)
    for name, node in expected.items():
        other = found[name]
        if isinstance(node, zarrfs.Group):
            assert_equal_trees(other, node)
            continue
        for attribute in ("shape", "chunks", "shards", "dtype", "dimension_names"):
            assert getattr(other, attribute) == getattr(node, attribute), (name, attribute)
        assert dict(other.attrs) == dict(node.attrs), name
        np.testing.assert_equal(other.fill_value, node.fill_value)
        np.testing.assert_array_equal(other[...], node[...])


TREE_COMMANDS = {
    "cp -r": "cp -r {source} {target}",
    "cp -a": "cp -a {source} {target}",
    "cp -r to an existing directory": "mkdir {target}; cp -r {source}/. {target}",
    "cp -r inside the mount": "cp -a {source} {target}2; cp -r {target}2 {target}",
    "rsync -a": "rsync -a {source}/ {target}; rsync -a {source}/ {target}",
    "rsync -a --inplace": "rsync -a --inplace {source}/ {target}",
    "tar x": "mkdir {target}; tar c -C {source} . | tar x -C {target}",
    "tar x in the reverse order": (
        "mkdir {target}; cd {source}; tar c --no-recursion $(find . | sort -r) | tar x -C {target}"
    ),
    "shutil.copytree": "{python} -c \"import shutil; shutil.copytree('{source}', '{target}')\"",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[zarrfs.Group, Path]]:
    """A tree of nodes, and its directory in a mount that is read-only."""
    directory = tmp_path_factory.mktemp("tree")
    expected = make_tree(directory / "source.zarr")
    with mounted(directory / "source.zarr", directory / "source") as source:
        yield expected, source / "tree"


@pytest.mark.parametrize("command", TREE_COMMANDS)
def test_a_tree_is_copied(command: str, tree: tuple[zarrfs.Group, Path], tmp_path: Path) -> None:
    bash = require_program("bash")
    for program in ("cp", "rsync", "tar", "find"):
        if f"{program} " in TREE_COMMANDS[command]:
            require_program(program)
    expected, source = tree
    zarrfs.create_group(tmp_path / "target.zarr")
    with mounted(tmp_path / "target.zarr", tmp_path / "target", "--rw") as target:
        text = TREE_COMMANDS[command].format(
            source=source, target=target / "copy", python=shlex.quote(sys.executable)
        )
        run(bash, "-e", "-o", "pipefail", "-c", text)
        unmount(str(target))
    assert_equal_trees(zarrfs.open_group(tmp_path / "target.zarr")["copy"], expected)


def test_mv_overwrites_unless_no_clobber_is_set(mount: Path) -> None:
    np.save(mount / "a.npy", np.arange(3))
    np.save(mount / "b.npy", np.arange(4))
    run("mv", "-n", mount / "a.npy", mount / "b.npy")
    assert len(np.load(mount / "b.npy")) == 4
    run("mv", mount / "a.npy", mount / "b.npy")
    assert len(np.load(mount / "b.npy")) == 3
    assert not (mount / "a.npy").exists()


def test_rsync_copies_arrays(mount: Path, store: Path, tmp_path: Path) -> None:
    require_program("rsync")
    source = tmp_path / "source"
    source.mkdir()
    np.save(source / "one.npy", np.arange(100_000))
    np.save(source / "two.npy", np.ones((3, 4), "f4"))
    run("rsync", "-a", f"{source}/", mount / "inner")
    np.testing.assert_array_equal(zarrfs.open_array(store, "inner/one")[...], np.arange(100_000))
    np.testing.assert_array_equal(zarrfs.open_array(store, "inner/two")[...], np.ones((3, 4), "f4"))


def test_attributes_are_set(mount: Path, store: Path) -> None:
    os.setxattr(mount / "img.npy", "user.zarr.attrs.scale", b"[1, 2.5]")
    os.setxattr(mount / "inner", "user.zarr.attrs.name", b"text")
    assert os.getxattr(mount / "img.raw", "user.zarr.attrs.scale") == b"[1, 2.5]"
    assert dict(zarrfs.open_array(store, "img").attrs) == {"scale": [1, 2.5]}
    assert dict(zarrfs.open_group(store, path="inner").attrs) == {"name": "text"}
    text = (mount / "img.json").read_text().replace('"scale"', '"size"')
    (mount / "img.json").write_text(text)
    assert dict(zarrfs.open_array(store, "img").attrs) == {"size": [1, 2.5]}
    run("sed", "-i", "s/2.5/7/", mount / "img.json")
    assert dict(zarrfs.open_array(store, "img").attrs) == {"size": [1, 7]}
    assert sorted(os.listdir(mount)) == [".group.json", "img.json", "img.npy", "img.raw", "inner"]


def test_a_mount_is_read_only_by_default(store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / "mnt") as mnt:
        assert os.stat(mnt / "img.raw").st_mode & 0o777 == 0o444
        with pytest.raises(OSError, match="Read-only file system"):
            os.mkdir(mnt / "x")
    with mounted(store, tmp_path / "mnt", "--rw") as mnt:
        assert os.stat(mnt / "img.raw").st_mode & 0o777 == 0o644
        assert os.statvfs(mnt).f_bavail == pytest.approx(os.statvfs(store).f_bavail, rel=0.5)


def test_random_writes_are_those_of_a_plain_file(tmp_path: Path) -> None:
    make_store(tmp_path / "store", tmp_path)
    with mounted(tmp_path / "store", tmp_path / "mnt", "--rw", "--cache-size", "8M") as mnt:
        assert random_writes(mnt, tmp_path, 600) == []
        unmount(str(mnt))
    assert stored_differences(tmp_path / "store", tmp_path) == []


FIO = (
    "fio --name=v --filename={path} --ioengine={engine} --rw=randwrite --bs=4k --size={nbytes} --verify=crc32c "
    "--do_verify=1 --verify_fatal=1 --verify_state_save=0 --overwrite=1 --fallocate=none --output={log}"
)


@pytest.mark.parametrize("engine", ["psync", "mmap"])
def test_fio_verifies_what_it_wrote(engine: str, tmp_path: Path) -> None:
    require_program("fio")
    make_store(tmp_path / "store", tmp_path)
    with mounted(tmp_path / "store", tmp_path / "mnt", "--rw") as mnt:
        for name in LAYOUTS:
            path = mnt / f"{name}.raw"
            nbytes = os.stat(path).st_size // 4096 * 4096
            run(*FIO.format(path=path, engine=engine, nbytes=nbytes, log=tmp_path / "fio").split())


def test_unmounting_stores_what_was_written(store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / "mnt", "--rw") as mnt:
        descriptor = os.open(mnt / "img.raw", os.O_RDWR)
        os.pwrite(descriptor, b"abc", 5)
        run("fusermount3", "-uz", mnt)
        os.close(descriptor)
        while is_mounted(str(mnt)):
            pass
    assert bytes(zarrfs.open_array(store, "img").read_bytes(5, 3)) == b"abc"


def fill_disk(disk: Path) -> None:
    """Write to a file of a disk until it is full."""
    with open(disk / "filler", "wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(1 << 12)):
            pass


@pytest.mark.parametrize("way", ["umount", "SIGTERM", "SIGKILL", "state"])
def test_data_that_a_full_disk_cannot_hold_are_named_when_the_mount_ends(
    way: str, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = small_disk if way == "state" else tmp_path
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "state"))
    data = np.zeros((64, 64), "u1")
    root = zarrfs.create_group(small_disk / "a.zarr")
    root.create_array("sub/img", shape=data.shape, dtype="u1", chunks=(64, 64), compressors=None)
    mnt = tmp_path / "mnt"
    with mounted(small_disk / "a.zarr", mnt, "--rw") as mount:
        (record,) = (state / "state" / "zarrfs" / "mounts").iterdir()
        process = json.loads(record.read_text())["pid"]
        fill_disk(small_disk)
        handle = os.open(mount / "sub" / "img.raw", os.O_RDWR)
        os.pwrite(handle, b"lost", 0)
        with pytest.raises(OSError, match="No space left"):
            os.close(handle)
        (mount / "temporary.npy~").write_bytes(b"x")
        assert (mount / "sub" / "img.raw").read_bytes()[:4] == b"lost"
        if way in ("SIGTERM", "SIGKILL"):
            ending = os.pidfd_open(process)
            os.kill(process, signal.Signals[way])
            select.select([ending], [], [], TIMEOUT)
            os.close(ending)
        done = zarrfs_command("umount", mnt)
        assert not is_mounted(str(mnt))
    log = (tmp_path / "mnt.log").read_text()
    if way == "SIGKILL":
        assert done.returncode == 0
        assert "its process was killed; data that were written last may not be stored" in done.stderr
        return
    assert done.returncode == 1
    assert "temporary" not in done.stderr
    if way == "state":
        assert f"the process {process} of the mount ended without stating" in done.stderr
    else:
        lost = "/sub/img: the data written to 1 chunks of the array are lost ((0, 0)): "
        assert lost in done.stderr
        assert "No space left" in done.stderr
        assert lost in log
    assert not record.exists()
    assert "is not a zarrfs mount" in zarrfs_command("umount", mnt).stderr
