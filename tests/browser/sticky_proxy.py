"""A small sticky proxy in front of several servers: each visitor stays with one server."""

import asyncio
import re
import zlib
from collections.abc import Sequence

SEAT = re.compile(rb"^cookie:.*\bdopl_seat=(\w+)", re.IGNORECASE | re.MULTILINE)
MOST = 64 << 10  # bytes of a request's head


class Proxy:
    """Connections are piped through; if a server is down, they go to the next.

    taken: how many connections each server was given
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports, self.taken = list(ports), dict.fromkeys(ports, 0)

    async def start(self) -> int:
        """The port it listens on."""
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MOST)
        return self.server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            their_reader, their_writer = await self._server_for(head)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        their_writer.write(head)
        await asyncio.gather(_pipe(reader, their_writer), _pipe(their_reader, writer))

    async def _server_for(self, head: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        found = SEAT.search(head)
        first = zlib.crc32(found[1] if found else b"") % len(self.ports)
        for port in self.ports[first:] + self.ports[:first]:
            try:
                opened = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.taken[port] += 1
            return opened
        raise OSError("no server is there")


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(MOST):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
