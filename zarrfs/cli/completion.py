"""``zarrfs completion``: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["SHELLS", "command", "completion_script"]

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Write the completion script of a shell to standard output.

    \b
    Examples:
      zarrfs completion bash > ~/.local/share/bash-completion/completions/zarrfs
      zarrfs completion zsh > ~/.zfunc/_zarrfs      (a directory of fpath)
      zarrfs completion fish > ~/.config/fish/completions/zarrfs.fish
    """
    click.echo(completion_script(ctx.find_root().command, shell))


def completion_script(main: click.Command, shell: str) -> str:
    """Return the script that completes the arguments of ``zarrfs`` in one of ``SHELLS``.

    The script calls the program for the completions, so that they match the installed version.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    # source() would run the shell to check its version.
    complete = completion(main, {}, "zarrfs", "_ZARRFS_COMPLETE")
    return complete.source_template % complete.source_vars()
