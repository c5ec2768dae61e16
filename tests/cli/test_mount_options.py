"""Options in the form of mount(8)."""

from __future__ import annotations

import click
import pytest

from zarrfs.cli.mount import command
from zarrfs.cli.mount_options import OptionCommand, is_helper_call, mount_arguments, split_mount_options

assert isinstance(command, OptionCommand)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-o", "immutable,cache_size=2G"], ["--immutable", "--cache-size=2G"]),
        (["-ocache-size=2G", "a"], ["--cache-size=2G", "a"]),
        (["-o", "max_read=1,auto_unmount"], ["-o", "max_read=1", "-o", "auto_unmount"]),
        (["-o", "defaults,noauto,user,_netdev,nofail,x-systemd.automount,x-gvfs-show,ro,user=me"], []),
        (["-o", "nosuid,nodev"], ["-o", "nosuid", "-o", "nodev"]),
        (["-o", r"log_file=/a\,b"], ["--log-file=/a,b"]),
        (["-o", "writable,debug"], ["--rw", "-d"]),
        (["-o", "rw"], ["--rw"]),
        (["a", "--", "-o", "b"], ["a", "--", "-o", "b"]),
        (["-o"], ["-o"]),
    ],
)
def test_options_of_the_command_are_recognized(arguments: list[str], expected: list[str]) -> None:
    assert isinstance(command, OptionCommand)
    assert command.expand(arguments) == expected


@pytest.mark.parametrize("text", ["immutable=yes", "cache_size"])
def test_a_value_that_is_missing_or_superfluous_is_an_error(text: str) -> None:
    assert isinstance(command, OptionCommand)
    with pytest.raises(click.UsageError, match="mount option"):
        command.expand(["-o", text])


def test_lists_are_split_at_commas_without_a_backslash() -> None:
    assert list(split_mount_options(r"a,b=c\,d,,e")) == ["a", "b=c,d", "e"]


def test_the_arguments_of_the_helper() -> None:
    assert mount_arguments(["/a", "/b"]) == ["mount", "--", "/a", "/b"]
    assert mount_arguments(["/a", "/b", "-sn", "-o", "rw,uid=1", "-t", "fuse.zarrfs", "-N", "ns"]) == [
        "mount",
        "-o",
        "uid=1",
        "--",
        "/a",
        "/b",
    ]
    assert mount_arguments(["/a", "/b", "-v"]) == ["--log-level", "info", "mount", "--", "/a", "/b"]
    assert mount_arguments(["/a", "/b", "-f"]) is None
    for wrong in (["/a"], ["/a", "/b", "/c"], ["/a", "/b", "-x"]):
        with pytest.raises(ValueError, match=r"expected|unknown"):
            mount_arguments(wrong)


def test_calls_of_mount_fuse_are_recognized() -> None:
    commands = {"mount", "info"}
    assert is_helper_call(["/a", "/b", "-o", "rw"], commands)
    assert not is_helper_call(["mount", "/a", "-o", "rw"], commands)
    assert not is_helper_call(["--log-level", "debug", "-o", "rw"], commands)
    assert not is_helper_call(["/a", "/b"], commands)
