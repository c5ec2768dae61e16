"""An SFTP server of one folder, to be run as a process: PORT FOLDER. User ``who`` with password ``secret``."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import asyncssh


class OneUser(asyncssh.SSHServer):
    """Lets in who knows the password."""

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("who", "secret")


class OneFolder(asyncssh.SFTPServer):
    """Shows a folder as the root."""

    def __init__(self, folder: str, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        super().__init__(channel, chroot=folder.encode())


async def serve(port: int, folder: str) -> None:
    """Serve until the process is ended."""
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=OneUser,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=partial(OneFolder, folder),
        allow_scp=False,
    )
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
