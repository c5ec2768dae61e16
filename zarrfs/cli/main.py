"""The ``zarrfs`` command. It loads the commands, configures logging, and prints every error in one line.

Each command is a module of this package with a click command named ``command``. The module is imported when the
command is called, so that ``zarrfs --help`` does not import the dependencies of the commands.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from zarrfs.cli.console import with_command_options
from zarrfs.cli.garbage import garbage_collection_paused
from zarrfs.cli.mount_options import is_helper_call, mount_arguments
from zarrfs.cli.standard_streams import complete_output, discard_output, open_closed_streams
from zarrfs.credentials import hide_credentials
from zarrfs.errors import OptionError, ZarrError
from zarrfs.logs import SafeRecords, logger
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["COMMANDS", "MODULES", "main", "run"]

COMMANDS = {
    "mount": "Mount Zarr hierarchies as files.",
    "umount": "Unmount hierarchies.",
    "mounts": "List the mounts.",
    "stats": "Show the statistics of a mount.",
    "info": "Show the metadata of an array or group.",
    "tree": "Show the hierarchy as a tree.",
    "ls": "List the members of a group.",
    "du": "Show the stored size of arrays.",
    "cat": "Write the values of an array.",
    "import": "Write files of other formats to a Zarr hierarchy.",
    "export": "Write an array to a file of another format.",
    "copy": "Copy an array or hierarchy between stores.",
    "convert": "Copy to another format or with another compression.",
    "rechunk": "Copy with another chunk shape.",
    "pyramid": "Build a multiscale image from an array.",
    "edit": "Change attributes and OME-NGFF metadata.",
    "migrate": "Write the metadata documents of a newer format in place.",
    "consolidate": "Write consolidated metadata.",
    "clean": "Remove temporary files of killed writers.",
    "check": "Validate OME-NGFF metadata and consolidated metadata.",
    "verify": "Decode every chunk and report the broken ones.",
    "view": "Open the desktop viewer.",
    "doctor": "Check whether mounts and the viewer work on this system.",
    "completion": "Write the completion script of a shell.",
}
"""The commands in the order of --help. Each is the module of that name."""

MODULES = {"import": "import_files"}
"""The modules of commands whose names are Python keywords."""

USAGE_STATUS = 2
"""The exit status of click for incorrect usage."""

INTERRUPTED_STATUS = 130

BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""The environment variable that OpenBLAS, which is part of NumPy, reads when it is loaded."""

CLOSED_PIPE_STATUS = 141
"""The exit status if the reader of standard output, such as head, has closed it. Shells report this status after
SIGPIPE.
"""


class _ClosedPipeError(Exception):
    """Standard output was closed by its reader. Not a subclass of OSError, because click handles OSError itself."""


class _LocationType(click.types.StringParamType):
    """The text of an argument. Shells complete it to a path; the program checks it."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


@contextmanager
def _closed_pipe_detected() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ClosedPipeError from error


def _module(name: str) -> str:
    return f"zarrfs.cli.{MODULES.get(name, name)}"


def _invoked_command(ctx: click.Context) -> click.Command:
    """Return the subcommand that a context of the group runs."""
    command: click.Command = import_module(_module(ctx.invoked_subcommand or "")).command
    return command


class _CommandFormatter(logging.Formatter):
    """Formats log records with the options of a command. Threads other than the main one have no context of click."""

    def __init__(self, command: click.Command) -> None:
        super().__init__("zarrfs: %(levelname)s: %(message)s")
        self.command = command

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in logging
        return with_command_options(super().formatMessage(record), self.command)


class CommandGroup(click.Group):
    """A group whose commands are modules of this package."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _closed_pipe_detected():  # --help and --version print here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _closed_pipe_detected():
                return super().invoke(ctx)
        except ZarrError as error:
            command = _invoked_command(ctx)
            error.args = tuple(
                with_command_options(text, command) if isinstance(text, str) else text for text in error.args
            )
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if find_spec(_module(name)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        with garbage_collection_paused(), _without_blas_threads():
            command: click.Command = import_module(_module(cmd_name)).command
        for parameter in command.params:
            if isinstance(parameter, click.Argument) and parameter.type is click.STRING:
                parameter.type = _LocationType()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Without the modules of the commands, whose import is slow.
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in names] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The descriptions come from COMMANDS, so that the list of commands does not import the modules.
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@contextmanager
def _without_blas_threads() -> Iterator[None]:
    """Prevent NumPy, if it is imported within the context, from starting threads for the algebra of large matrices.

    The commands use small ones, and starting the threads takes a tenth of the time of a short command.
    """
    if BLAS_THREADS in os.environ:
        yield
        return
    os.environ[BLAS_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(BLAS_THREADS, None)


def _print_versions(ctx: click.Context, parameter: click.Parameter, requested: bool) -> None:
    # The module loads the libraries whose versions it shows.
    if requested:
        from zarrfs.cli.versions import print_versions

        print_versions(ctx, parameter, requested)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of zarrfs and of the libraries that it uses, and exit.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="The minimum level of messages on standard error.",
)
@click.pass_context
def main(ctx: click.Context, log_level: str) -> None:
    """Work with Zarr hierarchies: mount, inspect, copy, convert and validate them.

    A LOCATION is a directory, a zip file, a URL, or a path inside one of them: image.zarr, image.zarr/labels/0,
    survey.zarr.zip.

    \b
    Examples:
      zarrfs info image.zarr
      zarrfs tree image.zarr
      zarrfs mount image.zarr /mnt/image
      zarrfs umount /mnt/image

    Exit codes: 0 success; 1 error; 2 incorrect usage; 3 a copy without the members that --skip-broken skipped;
    130 interrupted; 141 the reader of the output has closed the pipe. zarrfs COMMAND --help shows the help of a
    command.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # https://no-color.org
        ctx.color = False
    handler = logging.StreamHandler()
    handler.setFormatter(_CommandFormatter(_invoked_command(ctx)))
    logger.handlers[:] = [handler]
    # Libraries such as tifffile log texts of damaged files.
    others = logging.StreamHandler()
    others.setLevel(logging.WARNING)
    others.setFormatter(logging.Formatter("zarrfs: %(levelname)s: %(name)s: %(message)s"))
    others.addFilter(SafeRecords())
    logging.lastResort = others
    logger.setLevel(log_level.upper())


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Errors of the user and of the data are printed without a traceback.

    By default ``arguments`` are those of the process.
    """
    open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters that the encoding of the terminal or pipe lacks are printed as escape sequences.
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments is None and is_helper_call(sys.argv[1:], COMMANDS):
        arguments = mount_arguments(sys.argv[1:])
    try:
        with complete_output():
            status = main.main(arguments, prog_name="zarrfs", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED_STATUS)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED_STATUS)
    except click.ClickException as error:
        _show_usage_error(error)
        sys.exit(error.exit_code)
    except (_ClosedPipeError, BrokenPipeError):
        discard_output()
        sys.exit(CLOSED_PIPE_STATUS)
    except OptionError as error:
        _fail(str(error), USAGE_STATUS)
    except (ZarrError, OSError) as error:
        _fail(str(error), 1)
    except RecursionError:
        _fail("the data is nested too deeply", 1)
    except MemoryError:
        _fail("there is not enough memory", 1)
    except Exception as error:
        logger.debug("unexpected error", exc_info=True)
        _fail(
            f"unexpected error: {type(error).__name__}: {error}; please report it with the output of "
            "zarrfs --log-level debug",
            1,
        )
    gc.freeze()  # otherwise the collector examines all objects once more when the interpreter ends
    sys.exit(status if isinstance(status, int) else 0)


def _show_usage_error(error: click.ClickException) -> None:
    """Print a usage error in the format of click. Text from the command line is escaped."""
    text = io.StringIO()
    error.show(text)
    usage, marker, message = text.getvalue().rstrip("\n").partition("Error: ")
    # The text before the message (usage and hint) does not contain text from the command line.
    sys.stderr.write(f"{usage}{marker}{safe_text(hide_credentials(message), MAX_MESSAGE)}\n")


def _fail(text: str, status: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    sys.stderr.write(f"zarrfs: {safe_text(hide_credentials(text), MAX_MESSAGE)}\n")
    sys.exit(status)
