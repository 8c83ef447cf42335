"""Sources by their URL: brokers, files of JSON lines, and the backups of earlier transfers."""

import gzip
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from yarl import URL

from statesvc.addons.shovel.amqp_source import AmqpSource
from statesvc.addons.shovel.backup import backup_files, read_backup
from statesvc.addons.shovel.redis_source import RedisSource
from statesvc.addons.shovel.source_message import ShovelError, Source, Taken, Transport

AMQP_SCHEMES: Final = ("amqp", "amqps")
REDIS_SCHEMES: Final = ("redis", "rediss", "unix")


def make_source(
    url: str,
    *,
    queues: Sequence[str],
    delayed: str | None,
    prefetch: int,
) -> Source:
    """Make a source that is not open yet. Raises ShovelError.

    `delayed`: the prefix of the queues of native delayed delivery; None: leave them alone.
    """
    place = parse_url(url)
    if is_endless(url) and not queues and delayed is None:
        raise ShovelError("name the queues to take from: --queue NAME")
    if place.scheme in AMQP_SCHEMES:
        return AmqpSource(place, queues, delayed=delayed, prefetch=prefetch)
    if delayed is not None:
        raise ShovelError("native delayed delivery is RabbitMQ's: leave out --delayed")
    if place.scheme in REDIS_SCHEMES:
        return RedisSource(place, queues)
    if place.scheme in {"", "file"}:
        path = Path(place.path if place.scheme else url)
        return LineSource(path)
    raise ShovelError(
        f"nothing is taken from {place.scheme!r}: use amqp://, amqps://, redis://, rediss:// or a"
        " file"
    )


def is_endless(url: str) -> bool:
    """Return whether the source never ends."""
    return parse_url(url).scheme in {*AMQP_SCHEMES, *REDIS_SCHEMES}


def parse_url(url: str) -> URL:
    """Parse a URL. Raises ShovelError, which does not repeat the login."""
    try:
        place = URL(url)
    except ValueError:
        raise ShovelError(
            "the broker's URL is none; percent-encode what is special in user and password"
        ) from None
    if place.scheme in AMQP_SCHEMES and not place.host:
        raise ShovelError("the broker's URL names no host")
    return place


class StoredSource:
    """Messages in files. It ends; acknowledging has no effect."""

    def __init__(self) -> None:
        self._messages: Iterator[Taken] | None = None
        self._is_over = False

    def read(self) -> Iterable[Taken]:
        raise NotImplementedError

    async def open(self) -> None:
        """Rewind."""
        self._messages = iter(self.read())

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        del wait_seconds
        batch = [] if self._messages is None else list(itertools.islice(self._messages, limit))
        self._is_over = not batch
        return batch

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Leave the file as it is."""

    async def waiting(self) -> int:
        """Count those that were not read yet; this reads them all."""
        return 0 if self._is_over else sum(1 for _ in self.read())

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Return the first ones."""
        return list(itertools.islice(self.read(), limit))

    async def close(self) -> None:
        """Rewind for the next opening."""
        self._messages = None


class LineSource(StoredSource):
    """A file of JSON lines, compressed where its name ends with .gz."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        if not path.is_file():
            raise ShovelError(f"there is no file {path}")

    def read(self) -> Iterator[Taken]:
        """Yield the messages; skip blank lines."""
        opened = gzip.open if self._path.suffix == ".gz" else open
        with opened(self._path, "rb") as file:
            for line in file:
                if content := bytes(line).strip():
                    yield Taken(transport=Transport.FILE, queue=self._path.name, body=content)


class BackupSource(StoredSource):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        backup_files(folder)

    def read(self) -> Iterator[Taken]:
        """Return them in the order in which they were taken."""
        return itertools.chain.from_iterable(read_backup(self._folder))
