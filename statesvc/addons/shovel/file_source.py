"""Messages from files: JSON lines, and the backups of earlier transfers."""

import gzip
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from statesvc.addons.shovel.backup import backup_files, read_backup
from statesvc.addons.shovel.source import ShovelError, Unacknowledged, Wants
from statesvc.addons.shovel.source_message import Taken, Transport


class StoredSource:
    """Ends; nothing is acknowledged. Of several processes each takes its share. `wants`: None for all messages."""

    def __init__(self, *, process: int, processes: int, wants: Wants | None) -> None:
        self._wants = wants
        self._process = process
        self._processes = processes
        self._messages: Iterator[Taken] | None = None
        self._is_over = False

    def read(self) -> Iterable[Taken]:
        raise NotImplementedError

    async def open(self) -> None:
        """Begin anew after it was closed."""
        self._messages = filter(
            self._wants or _all, itertools.islice(self.read(), self._process, None, self._processes)
        )

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        """Return the next ones."""
        del wait_seconds
        batch = [] if self._messages is None else list(itertools.islice(self._messages, limit))
        self._is_over = not batch
        return batch

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Do nothing: the file stays as it is."""

    async def waiting(self) -> int:
        """Count those that were not read yet; this reads them all."""
        return 0 if self._is_over else sum(1 for _ in self.read())

    async def sample(self, limit: int) -> Sequence[Taken]:
        """Return the first ones."""
        return list(itertools.islice(self.read(), limit))

    async def unacknowledged(self, limit: int) -> Unacknowledged | None:
        """Return nothing."""
        del limit
        return Unacknowledged(0, ())

    async def close(self) -> None:
        """Close the socket. Safe to call twice."""
        self._messages = None


class LineSource(StoredSource):
    """A file of JSON lines, compressed where its name ends with .gz."""

    def __init__(self, path: Path, *, process: int, processes: int, wants: Wants | None) -> None:
        super().__init__(process=process, processes=processes, wants=wants)
        self._path = path
        if not path.is_file():
            raise ShovelError(f"there is no file {path}")

    def read(self) -> Iterator[Taken]:
        """Yield the messages; blank lines are none."""
        opened = gzip.open if self._path.suffix == ".gz" else open
        with opened(self._path, "rb") as file:
            for line in file:
                if content := bytes(line).strip():
                    yield Taken(transport=Transport.FILE, queue=self._path.name, body=content)


class BackupSource(StoredSource):
    """Messages that were taken before."""

    def __init__(self, folder: Path, *, process: int, processes: int, wants: Wants | None) -> None:
        super().__init__(process=process, processes=processes, wants=wants)
        self._folder = folder
        backup_files(folder)

    def read(self) -> Iterator[Taken]:
        """Yield them in the order in which they were taken."""
        for batch in read_backup(self._folder):
            yield from batch.messages


def _all(_message: Taken) -> bool:
    return True
