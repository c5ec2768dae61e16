"""Options in the form of ``mount -o name,name=value`` as options of ``zarrfs mount``; the arguments of mount(8)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import click

__all__ = ["OptionCommand", "is_helper_call", "mount_arguments", "split_mount_options"]

IGNORED_LIST = """
auto noauto user nouser users nousers owner noowner group nogroup defaults _netdev nofail ro atime diratime relatime
norelatime strictatime nostrictatime lazytime nolazytime iversion noiversion loud silent mand nomand rbind bind
"""

IGNORED = frozenset(IGNORED_LIST.split())
"""Options of mount(8) and fstab(5) that are accepted and have no effect: mount(8) handles them itself, or FUSE has no
such feature."""

IGNORED_PREFIXES = ("x-", "X-", "comment=", "user=", "helper=", "uhelper=", "pri=")

ALIASES = {"debug": "-d", "writable": "--rw"}


def split_mount_options(text: str) -> Iterator[str]:
    """Yield the options of a list that is separated by commas. A comma after a backslash belongs to the value."""
    for part in re.split(r"(?<!\\),", text):
        option = part.replace("\\,", ",").strip()
        if option:
            yield option


class OptionCommand(click.Command):
    """A command whose ``-o`` option also accepts the long options of the command (``-o cache_size=2G,immutable``)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace the lists of ``-o`` by the options that they contain."""
        return super().parse_args(ctx, self.expand(args))

    def expand(self, arguments: Sequence[str]) -> list[str]:
        """Return arguments in which lists of ``-o`` are replaced by long options, or by ``-o`` with one option."""
        expanded: list[str] = []
        remaining = iter(arguments)
        for argument in remaining:
            if argument == "--":
                return [*expanded, argument, *remaining]
            if argument == "-o":
                text = next(remaining, None)
                if text is None:
                    expanded.append(argument)  # click reports the missing value
                    break
                expanded += [
                    part for option in split_mount_options(text) for part in self._expand_one(option)
                ]
            elif argument.startswith("-o") and not argument.startswith("--"):
                expanded += [
                    part for option in split_mount_options(argument[2:]) for part in self._expand_one(option)
                ]
            else:
                expanded.append(argument)
        return expanded

    def _expand_one(self, option: str) -> list[str]:
        name, equals, value = option.partition("=")
        if name in IGNORED or option.startswith(IGNORED_PREFIXES):
            return []
        wanted = ALIASES.get(name, f"--{name.replace('_', '-')}")
        for parameter in self.params:
            if not isinstance(parameter, click.Option) or wanted not in parameter.opts:
                continue
            if parameter.is_flag:
                if equals:
                    raise click.UsageError(f"the mount option {name!r} has no value, found {option!r}")
                return [wanted]
            if not equals:
                raise click.UsageError(f"the mount option {name!r} needs a value: {name}=VALUE")
            return [f"{wanted}={value}"]
        return [] if name == "rw" else ["-o", option]


def is_helper_call(arguments: Sequence[str], commands: Collection[str]) -> bool:
    """Return whether the arguments of ``zarrfs`` are those of mount.fuse(8): ``SOURCE DIRECTORY -o LIST``."""
    return (
        len(arguments) >= 4
        and arguments[2] == "-o"
        and arguments[0] not in commands
        and arguments[0][:1] != "-"
    )


def mount_arguments(arguments: Sequence[str]) -> list[str] | None:
    """Return the arguments of ``zarrfs`` for those of mount(8). None if nothing must be mounted (``-f``).

    mount(8) always passes ``rw`` unless ``ro`` is given, so ``rw`` cannot mean that the store may be changed.
    Raises ValueError for arguments that mount(8) does not use.
    """
    positional: list[str] = []
    options: list[str] = []
    is_fake = is_verbose = False
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "-o":
            options += split_mount_options(next(remaining, ""))
        elif argument in ("-t", "-N"):
            next(remaining, None)
        elif argument.startswith("-") and len(argument) > 1:
            if not set(argument[1:]) <= set("sfnv"):
                raise ValueError(f"unknown option {argument}")
            is_fake |= "f" in argument
            is_verbose |= "v" in argument
        else:
            positional.append(argument)
    if len(positional) != 2:
        raise ValueError(f"expected a source and a directory, found {len(positional)} arguments")
    if is_fake:
        return None
    kept = [option.replace(",", "\\,") for option in options if option != "rw"]
    listed = ["-o", ",".join(kept)] if kept else []
    level = ["--log-level", "info"] if is_verbose else []
    return [*level, "mount", *listed, "--", *positional]
