"""The ``zarrfs`` command: finds its verbs, sets up logging, and makes every error one clear line.

A verb is a module here with a click command named ``command``. It is imported when it is called, so that
``zarrfs --help`` needs none of what they do.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn

import click

from zarrfs._version import __version__
from zarrfs.errors import ZarrError
from zarrfs.logs import logger
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["VERBS", "main", "run"]

VERBS = {
    "mount": "Show a Zarr hierarchy as ordinary files.",
    "umount": "Remove a mount made by zarrfs mount.",
    "info": "Say what an array or group is.",
    "tree": "Draw the hierarchy.",
    "copy": "Copy an array or hierarchy between stores.",
    "convert": "Copy into another format, or with other compression.",
    "rechunk": "Copy with chunks of another shape.",
    "migrate": "Give a hierarchy the documents of a newer format, in place.",
    "consolidate": "Gather all metadata of a hierarchy in one document.",
    "clean": "Remove what killed writers left behind.",
    "check": "Check OME-NGFF metadata, and consolidated ones.",
    "view": "Open the desktop viewer.",
    "doctor": "Say whether FUSE is usable here, and what to do if not.",
}
"""The verbs in the order of --help; each is the module of that name."""

INTERRUPTED = 130


class Verbs(click.Group):
    """A group whose commands are modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for verb in VERBS if find_spec(f"zarrfs.cli.{verb}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"zarrfs.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The one-line texts are here, so that listing the verbs does not import them.
        with formatter.section("Commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in self.list_commands(ctx)])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="zarrfs")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="How much to say on standard error.",
)
def main(log_level: str) -> None:
    """Open Zarr arrays with ordinary programs.

    A LOCATION is a directory, a zip file, or a path into one: image.zarr, image.zarr/labels/0, survey.zarr.zip.

    \b
    Examples:
      zarrfs info image.zarr
      zarrfs tree image.zarr
      zarrfs mount image.zarr /mnt/image
      zarrfs umount /mnt/image

    Exit codes: 0 done, 1 an error (said in one line), 2 wrong use, 3 a copy without the members that --skip-broken
    left out, 130 interrupted. Help on one command: zarrfs COMMAND --help.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("zarrfs: %(levelname)s: %(message)s"))
    logger.handlers[:] = [handler]
    logger.setLevel(log_level.upper())


def run() -> None:
    """Run the command line; never a traceback for what a user did or data contain."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or pipe of another encoding shows what it lacks as an escape sequence.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = main.main(prog_name="zarrfs", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        _show_usage_error(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Who reads us has seen enough (head, less).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ZarrError, OSError) as error:
        _fail(str(error), 1)
    except RecursionError:
        _fail("the data are nested deeper than can be followed", 1)
    except MemoryError:
        _fail("there is not enough memory for this", 1)
    except Exception as error:
        logger.debug("unexpected error", exc_info=True)
        _fail(
            f"unexpected error: {type(error).__name__}: {error}; please report it with the output of "
            "zarrfs --log-level debug",
            1,
        )
    sys.exit(status if isinstance(status, int) else 0)


def _show_usage_error(error: click.ClickException) -> None:
    """Print a usage error as click does, with the words of the command line made safe to display."""
    text = io.StringIO()
    error.show(text)
    before, mark, message = text.getvalue().rstrip("\n").partition("Error: ")
    # What precedes the message (usage, hint) is the program's own text; the message is one line.
    sys.stderr.write(f"{before}{mark}{safe_text(message, MAX_MESSAGE)}\n")


def _fail(text: str, status: int) -> NoReturn:
    sys.stderr.write(f"zarrfs: {safe_text(text, MAX_MESSAGE)}\n")
    sys.exit(status)
