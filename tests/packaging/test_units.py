"""The systemd units and the entries of fstab in packaging/systemd and docs/mount-at-boot.md."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.documentation.pages import ROOT, blocks
from tests.engine.stores.servers import web_server
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT
from tests.programs import require_program
from zarrfs.mount import is_mounted, unmount

TEMPLATE = ROOT / "packaging" / "systemd" / "zarrfs@.service"
GUIDE = ROOT / "docs" / "mount-at-boot.md"
VALUES = np.arange(24, dtype="u2").reshape(2, 3, 4)


def guide_block(language: str) -> str:
    (text,) = (block.text for block in blocks(GUIDE) if block.language == language)
    return text


def commands(unit: str) -> dict[str, str]:
    """Return the commands of a unit, by key. A minus sign, which ignores a failure, is removed."""
    found = re.findall(r"^(Exec\w+)=-?(.*)$", unit, re.MULTILINE)
    assert [key for key, _ in found] == ["ExecStartPre", "ExecStart", "ExecReload", "ExecStop"]
    return dict(found)


def run(command: str, variables: dict[str, str]) -> None:
    """Run a command of a unit. systemd splits the value of $NAME at spaces, and not that of ${NAME}."""
    words: list[str] = []
    for word in shlex.split(command):
        if word.startswith("$") and not word.startswith("${"):
            words += variables[word[1:]].split()
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]], word))
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        words,
        env={**os.environ, "PATH": path, "HOME": variables["HOME"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def process_of(mountpoint: Path, home: Path) -> str:
    listed = subprocess.run(
        [sys.executable, "-m", "zarrfs", "mounts", "--json"],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        check=True,
        timeout=TIMEOUT,
    )
    (entry,) = (item for item in json.loads(listed.stdout) if item["mountpoint"] == str(mountpoint))
    return str(entry["pid"])


@needs_fuse
@pytest.mark.parametrize("source", ["template", "guide"])
def test_the_commands_of_the_unit_mount_reload_and_unmount(source: str, tmp_path: Path) -> None:
    unit = TEMPLATE.read_text(encoding="utf-8") if source == "template" else guide_block("ini")
    zarrfs.create_array(tmp_path / "image.zarr", data=VALUES)
    mountpoint = tmp_path / "mnt" / "image"
    with web_server(tmp_path) as server:
        location = f"{server.url}/image.zarr"
        # Only root and users who are permitted to do so can use --allow-other.
        unit = unit.replace("s3://bucket/image.zarr", location).replace("/mnt/image", str(mountpoint))
        run_commands = commands(unit.replace("--allow-other ", ""))
        variables = {
            "LOCATION": location,
            "MOUNTPOINT": str(mountpoint),
            "OPTIONS": "--cache-size 2G",
            "HOME": str(tmp_path),
        }
        try:
            run(run_commands["ExecStartPre"], variables)
            run(run_commands["ExecStart"], variables)
            assert np.array_equal(np.load(mountpoint / "image.npy"), VALUES)
            if not Path("/bin/kill").exists():
                pytest.skip("/bin/kill is not installed (procps)")
            run(run_commands["ExecReload"], {**variables, "MAINPID": process_of(mountpoint, tmp_path)})
            assert np.array_equal(np.load(mountpoint / "image.npy"), VALUES)
            run(run_commands["ExecStop"], variables)
            assert not is_mounted(str(mountpoint))
        finally:
            if is_mounted(str(mountpoint)):
                unmount(str(mountpoint), lazy=True)


@needs_fuse
def test_the_entry_of_fstab_is_mounted_by_the_helper(tmp_path: Path) -> None:
    source, _, type_name, options, *_ = guide_block("text").split()
    zarrfs.create_array(tmp_path / "image.zarr", data=VALUES)
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    with web_server(tmp_path) as server:
        location = source.replace("https://example.org", server.url)
        helper = Path(sys.executable).with_name("mount.zarrfs")
        options = options.replace("allow_other,", "")
        try:
            run(
                shlex.join(
                    [str(helper), location, str(mountpoint), "-n", "-o", f"rw,{options}", "-t", type_name]
                ),
                {"HOME": str(tmp_path)},
            )
            assert np.array_equal(np.load(mountpoint / "image.npy"), VALUES)
        finally:
            if is_mounted(str(mountpoint)):
                unmount(str(mountpoint), lazy=True)


@pytest.mark.parametrize("source", ["template", "guide", "mount unit"])
def test_systemd_accepts_the_units(source: str, tmp_path: Path) -> None:
    require_program("systemd-analyze")
    name, text = {
        "template": ("zarrfs@image.service", TEMPLATE.read_text(encoding="utf-8")),
        "guide": ("zarrfs-image.service", guide_block("ini")),
        "mount unit": ("mnt-image.mount", TEMPLATE.with_name("zarrfs.mount.example").read_text("utf-8")),
    }[source]
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert (done.returncode, done.stderr) == (0, "")
