"""An SFTP server for one folder, run as a process with the arguments PORT FOLDER. User ``who``, password ``secret``."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import asyncssh


class SingleUserServer(asyncssh.SSHServer):
    """Accepts one user name and password."""

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("who", "secret")


class SingleFolderServer(asyncssh.SFTPServer):
    """Serves a folder as the root directory."""

    def __init__(self, folder: str, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        super().__init__(channel, chroot=folder.encode())


async def serve(port: int, folder: str) -> None:
    """Serve until the process is killed."""
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=SingleUserServer,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=partial(SingleFolderServer, folder),
        allow_scp=False,
    )
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
