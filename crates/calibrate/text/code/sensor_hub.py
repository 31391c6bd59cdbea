"""A small publish/subscribe hub for weather sensors, built on asyncio streams.

Protocol, one line per message, UTF-8, at most 4096 bytes:

    HELLO <station-id>            introduce a sensor or a viewer
    PUT <topic> <number>          publish one reading
    SUB <pattern>                 receive readings whose topic matches
    PING                          answered by PONG

Viewers that read too slowly lose the oldest readings of a topic instead of
slowing everybody down: a late temperature is worth less than the current one.
"""

import asyncio
import contextlib
import fnmatch
import itertools
import logging
import math
import signal
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

logger = logging.getLogger("hub")

IDLE_LIMIT = 90.0      # seconds of silence before we hang up
WRITE_LIMIT = 5.0      # a flush that takes longer means a dead peer
MAX_LINE = 4096
MAX_TOPICS = 10_000


class ProtocolError(Exception):
    """The peer said something that we do not understand."""


@dataclass(frozen=True, slots=True)
class Reading:
    topic: str
    value: float
    station: str
    received: float = field(default_factory=time.time)

    def encode(self) -> bytes:
        return f"VAL {self.topic} {self.value:.6g} {self.station} {self.received:.3f}\n".encode()


class Mailbox:
    """A queue that holds at most one pending reading per topic.

    ``put`` never blocks. When a topic is already waiting, its value is replaced
    but it keeps its place in line, so a chatty sensor cannot starve a quiet one.
    """

    def __init__(self) -> None:
        self._pending: OrderedDict[str, Reading] = OrderedDict()
        self._ready = asyncio.Event()
        self._closed = False
        self.replaced = 0

    def put(self, reading: Reading) -> None:
        if reading.topic in self._pending:
            self.replaced += 1
        self._pending[reading.topic] = reading
        self._ready.set()

    def close(self) -> None:
        self._closed = True
        self._ready.set()

    async def drain(self) -> list[Reading]:
        """Wait for something to send; an empty list means that we are done."""
        await self._ready.wait()
        batch = list(self._pending.values())
        self._pending.clear()
        if not self._closed:
            self._ready.clear()
        return batch


class RollingStats:
    """Mean and spread of the latest readings, updated in constant time."""

    __slots__ = ("_window", "_sum", "_squares")

    def __init__(self, length: int = 60) -> None:
        self._window: deque[float] = deque(maxlen=length)
        self._sum = 0.0
        self._squares = 0.0

    def add(self, value: float) -> None:
        if len(self._window) == self._window.maxlen:
            oldest = self._window[0]
            self._sum -= oldest
            self._squares -= oldest * oldest
        self._window.append(value)
        self._sum += value
        self._squares += value * value

    def is_outlier(self, value: float, sigmas: float = 8.0) -> bool:
        n = len(self._window)
        if n < 20:
            return False
        mean = self._sum / n
        # Rounding can push the difference slightly below zero.
        variance = max(self._squares / n - mean * mean, 0.0)
        return abs(value - mean) > sigmas * max(math.sqrt(variance), 0.05)


class Hub:
    def __init__(self) -> None:
        self._subscribers: dict["Session", list[str]] = {}
        self._latest: dict[str, Reading] = {}
        self._stats: dict[str, RollingStats] = {}

    def publish(self, reading: Reading) -> None:
        if reading.topic not in self._latest and len(self._latest) >= MAX_TOPICS:
            raise ProtocolError("too many topics")
        stats = self._stats.setdefault(reading.topic, RollingStats())
        if stats.is_outlier(reading.value):
            logger.warning("suspicious %s=%g from %s", reading.topic, reading.value, reading.station)
        stats.add(reading.value)
        self._latest[reading.topic] = reading
        for session, patterns in self._subscribers.items():
            if any(fnmatch.fnmatchcase(reading.topic, p) for p in patterns):
                session.mailbox.put(reading)

    def subscribe(self, session: "Session", pattern: str) -> None:
        self._subscribers.setdefault(session, []).append(pattern)
        # Newcomers see the present state at once rather than an empty screen.
        for topic in fnmatch.filter(self._latest, pattern):
            session.mailbox.put(self._latest[topic])

    def forget(self, session: "Session") -> None:
        self._subscribers.pop(session, None)


class Session:
    _numbers = itertools.count(1)

    def __init__(self, hub: Hub, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hub = hub
        self.reader = reader
        self.writer = writer
        self.mailbox = Mailbox()
        self.station = ""
        self.number = next(self._numbers)

    async def run(self) -> None:
        """Serve one connection until either direction ends."""
        sender = asyncio.create_task(self._send_loop(), name=f"send-{self.number}")
        receiver = asyncio.create_task(self._receive_loop(), name=f"recv-{self.number}")
        try:
            done, _ = await asyncio.wait({sender, receiver}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if error := task.exception():
                    await self._say_goodbye(error)
        finally:
            self.hub.forget(self)
            self.mailbox.close()
            for task in (sender, receiver):
                task.cancel()
            await asyncio.gather(sender, receiver, return_exceptions=True)
            self.writer.close()
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(self.writer.wait_closed(), 1.0)
            logger.info("session %d (%s) over, %d readings replaced",
                        self.number, self.station or "anonymous", self.mailbox.replaced)

    async def _say_goodbye(self, error: BaseException) -> None:
        match error:
            case ProtocolError():
                self.writer.write(f"ERR {error}\n".encode())
            case TimeoutError():
                self.writer.write(b"ERR idle\n")
            case ConnectionError():
                return
            case _:
                logger.error("session %d failed", self.number, exc_info=error)
                self.writer.write(b"ERR internal\n")
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self.writer.drain()

    async def _send_loop(self) -> None:
        while batch := await self.mailbox.drain():
            self.writer.writelines(reading.encode() for reading in batch)
            async with asyncio.timeout(WRITE_LIMIT):
                await self.writer.drain()

    async def _receive_loop(self) -> None:
        while True:
            async with asyncio.timeout(IDLE_LIMIT):
                try:
                    line = await self.reader.readline()
                except ValueError:  # longer than the stream's limit
                    raise ProtocolError("line too long") from None
            if not line:
                return
            self._handle(line.decode("utf-8", "replace").split())

    def _handle(self, words: list[str]) -> None:
        match words:
            case []:
                pass
            case ["HELLO", station] if station.isprintable() and len(station) <= 32:
                self.station = station
                self.writer.write(b"OK\n")
            case ["PUT", topic, number]:
                if not self.station:
                    raise ProtocolError("introduce yourself first")
                try:
                    value = float(number)
                except ValueError:
                    raise ProtocolError(f"not a number: {number[:20]}") from None
                if not math.isfinite(value):
                    raise ProtocolError("value must be finite")
                self.hub.publish(Reading(topic, value, self.station))
            case ["SUB", pattern]:
                self.hub.subscribe(self, pattern)
            case ["PING"]:
                self.writer.write(b"PONG\n")
            case [verb, *_]:
                raise ProtocolError(f"unknown or malformed command {verb[:12]}")


async def serve(host: str = "127.0.0.1", port: int = 7411) -> None:
    hub = Hub()
    sessions: set[asyncio.Task] = set()
    stop = asyncio.Event()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Keep a reference: the loop itself holds tasks only weakly.
        task = asyncio.create_task(Session(hub, reader, writer).run())
        sessions.add(task)
        task.add_done_callback(sessions.discard)

    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)

    server = await asyncio.start_server(accept, host, port, limit=MAX_LINE)
    async with server:
        logger.info("listening on %s", ", ".join(str(s.getsockname()) for s in server.sockets))
        await stop.wait()
        logger.info("shutting down, %d sessions open", len(sessions))
        server.close()
        for task in list(sessions):
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)8d %(name)s: %(message)s")
    asyncio.run(serve())
