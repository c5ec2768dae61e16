"""``zarrfs --version``: the versions of zarrfs and of the libraries that determine how it works here."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import click

from zarrfs._version import __version__
from zarrfs.cli.console import safe
from zarrfs.errors import MountError

__all__ = ["print_versions", "versions"]

CODEC_PACKAGES = ("numcodecs", "isal", "google-crc32c", "zstandard", "pcodec", "zfpy")


def print_versions(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print the versions and exit, if ``requested``."""
    if not requested or ctx.resilient_parsing:
        return
    click.echo(f"zarrfs, version {__version__}")
    for name, found in versions():
        click.echo(f"{name}: {safe(found)}")
    ctx.exit()


def versions() -> Iterator[tuple[str, str]]:
    """Yield the name of each library or part, and its version or why it is missing."""
    from zarrfs.engine.native.encoders import describe_executor
    from zarrfs.mount.fuse.binding import load_binding

    yield "Python", f"{platform.python_version()}, NumPy {version('numpy')}"
    try:
        binding = load_binding()
        yield "FUSE binding", f"{binding.name} {_installed(binding.name)}, {binding.library}"
    except MountError as error:
        yield "FUSE binding", str(error)
    is_used, found = describe_executor()
    yield "native reader and writer", found if is_used else f"not used: {found}"
    packages = [f"{name} {_installed(name)}" for name in CODEC_PACKAGES if _installed(name)]
    yield "codec libraries", ", ".join(packages)


def _installed(package: str) -> str:
    """Return the version of an installed package, or an empty string."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
