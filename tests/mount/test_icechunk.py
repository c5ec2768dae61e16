"""Mounts of repositories of Icechunk: their versions as directories, and writing to a branch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.icechunk_repositories import DATA, history, make_repository, open_repository
from tests.mount.mounted import mounted, needs_fuse, zarrfs_command
from zarrfs.errors import MountError
from zarrfs.mount.process import versions
from zarrfs.mount.process.commits import commit_mount

pytestmark = needs_fuse


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "repository")
    return tmp_path / "repository"


def test_a_repository_has_its_versions_as_directories(repository: Path, tmp_path: Path) -> None:
    opened = open_repository(repository)
    opened.create_branch("user/x", opened.lookup_branch("main"))
    newest, older = list(opened.ancestry(branch="main"))[:2]
    with mounted(f"icechunk:{repository}", tmp_path / "mount") as mount:
        names = sorted(path.name for path in mount.iterdir())
        assert names[:4] == ["branch.dev", "branch.main", "branch.user%2Fx", "snapshot." + names[3][9:]]
        assert [name.rpartition(".")[2] for name in names[3:-1]] == [older.id, newest.id]
        assert names[-1] == "tag.v1"
        for name in ("branch.main", "branch.user%2Fx", names[4]):
            np.testing.assert_array_equal(np.load(mount / name / "a/b.npy"), DATA)
        for name in ("branch.dev", "tag.v1", names[3]):
            np.testing.assert_array_equal(np.load(mount / name / "a/b.npy"), np.zeros_like(DATA))
        with pytest.raises(MountError, match="is not a writable mount of a branch"):
            commit_mount(str(mount))
    with zarrfs.open_array(f"icechunk:{repository}@{names[3]}/a/b") as array:
        np.testing.assert_array_equal(array[...], np.zeros_like(DATA))


def test_a_branch_is_committed_on_request_and_on_unmount(repository: Path, tmp_path: Path) -> None:
    with mounted(f"icechunk:{repository}@main", tmp_path / "mount", "--rw") as mount:
        np.save(mount / "new.npy", DATA)
        mapped = np.load(mount / "a/b.npy", mmap_mode="r+")
        mapped[0] = 9
        mapped.flush()
        done = zarrfs_command("mounts", "commit", mount, "--message", "by mount")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"icechunk:{repository}@main: snapshot ")
        assert history(repository)[0] == "by mount"
        (mount / ".zarrfs/commit").write_text("again")
        assert (mount / ".zarrfs/commit").read_text() == f"icechunk:{repository}@main: nothing was changed\n"
        del mapped
        np.save(mount / "second.npy", DATA)
        assert zarrfs_command("umount", mount).returncode == 0
    with pytest.raises(MountError, match="is not a mount of zarrfs that is running"):
        commit_mount(str(tmp_path / "mount"))
    assert len(history(repository)) == 4
    with zarrfs.open_group(f"icechunk:{repository}@main") as group:
        assert list(group) == ["a", "new", "second"]
        np.testing.assert_array_equal(group["a/b"][:2], [[9] * 8, DATA[1]])


def test_a_conflict_is_an_error_of_the_commit_and_of_the_unmount(repository: Path, tmp_path: Path) -> None:
    with mounted(f"icechunk:{repository}@main", tmp_path / "mount", "--rw") as mount:
        np.save(mount / "new.npy", DATA)
        with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as other:
            other.attrs["x"] = 1
        with pytest.raises(MountError, match="another writer has added a snapshot"):
            commit_mount(str(mount))
        done = zarrfs_command("umount", mount)
        assert done.returncode == 1
        assert "another writer has added a snapshot" in done.stderr
    with zarrfs.open_group(f"icechunk:{repository}@main") as group:
        assert list(group) == ["a"]


def test_names_are_valid_names_of_directories() -> None:
    assert versions._named("branch", ["a/b", "ü@x"], "") == {
        "branch.a%2Fb": "branch.a/b",
        "branch.%C3%BC@x": "branch.ü@x",
    }
