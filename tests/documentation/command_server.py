"""A server that runs ``zarrfs`` commands in forks of itself, so that each does not import all modules again.

``python command_server.py DIRECTORY`` imports the modules, listens at the socket ``DIRECTORY/socket``, and ends when
its standard input is closed. ``python -S command_server.py DIRECTORY ARGUMENT...`` runs ``zarrfs ARGUMENT...`` in the
server, with the files, the working directory and the environment of the caller, and exits with its exit code.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from contextlib import suppress

__all__: list[str] = []

MAX_REQUEST = 1 << 20
ENCODED_STATUS = 4

MODULES_OF_COMMANDS = (
    "rich.console",
    "rich.table",
    "rich.tree",
    "aiohttp",
    "distributed",
    "fsspec.implementations.http",
    "h5py",
    "s3fs",
    "tifffile",
    "yaozarrs",
    "zarrfs.mount",
)
"""What commands import when they need it. None of these modules starts threads."""


def request(directory: str, arguments: list[str]) -> int:
    """Run a command in the server, and return its exit code."""
    text = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{directory}/socket")
        socket.send_fds(connection, [len(text).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(text)
        status = connection.recv(ENCODED_STATUS)
    return int.from_bytes(status, "big") if status else 1


def serve(directory: str) -> None:
    import select

    import_commands()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{directory}/socket")
        server.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    server.close()
                    answer(connection)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def answer(connection: socket.socket) -> None:
    """Fork once more, run the command in the grandchild, and send its exit code."""
    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    text = b""
    while len(text) < int.from_bytes(length, "big"):
        text += connection.recv(MAX_REQUEST)
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall((status if status >= 0 else 128 - status).to_bytes(ENCODED_STATUS, "big"))
        os._exit(0)
    connection.close()
    for number, file in enumerate(array.array("i", files)):
        os.dup2(file, number)
        os.close(file)
    arguments, directory, environment = json.loads(text)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    run(arguments)


def run(arguments: list[str]) -> None:
    """Run a command in this process as the interpreter would, and end the process."""
    from zarrfs.cli.main import run as run_command

    sys.argv[:] = ["zarrfs", *arguments]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    run_command()


def import_commands() -> None:
    """Import what the commands import, apart from what would start threads."""
    from importlib import import_module

    from zarrfs.cli.main import COMMANDS, MODULES

    for name in COMMANDS:
        import_module(f"zarrfs.cli.{MODULES.get(name, name)}")
    for name in MODULES_OF_COMMANDS:
        with suppress(ImportError):
            import_module(name)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(request(sys.argv[1], sys.argv[2:]))
