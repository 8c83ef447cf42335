"""What the archive of bodies and that of the log have in common: a leader takes each period that is due through its steps.

```
begin > write > verify > [notice] > leave: the period is in files alone
          ^------- forget: the files are not what the database has
```
Each step ends in the ledger before the next begins, so a crash anywhere leaves what the next pass goes on from.
"""

import asyncio
import errno
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any, Generic, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.brief_locks import until_let_go
from statesvc.database.queries import Queries
from statesvc.database.sql_errors import Failure, failure
from statesvc.log.archive.folder import ArchiveNames, ArchivePath, file_fault, remove
from statesvc.log.archive.object_path import ObjectStoreError
from statesvc.log.epochs import read_epochs

Connection = AsyncConnection[Any]
P = TypeVar("P")

log = structlog.get_logger()


class PeriodFailedError(RuntimeError):
    """A period cannot be archived now; it is tried again. The message holds nothing of what is archived but ids and places."""


class NotVerifiedError(PeriodFailedError):
    """A file is not what the database has: it is written anew."""


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """How far a period came. `digests`: SHA-256 by file name, that of the file which leads to the others first; empty: none is written."""

    digests: Mapping[str, bytes]
    verified: bool


@dataclass(slots=True, kw_only=True)
class ArchivePassResult:
    """What a pass did, by the first days of the periods. `busy`: verified ones, whose tables others would not let go."""

    archived: list[date] = field(default_factory=list)
    busy: list[date] = field(default_factory=list)
    failed: list[date] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ArchiveLedger:
    """The steps that every ledger has, each one statement of the archive's own."""

    statements: Queries

    async def try_lead(self, connection: Connection) -> bool:
        """Whether this session (past any pooler) is the archiver until it ends."""
        await connection.execute(self.statements["limit_session"])
        row = await (await connection.execute(self.statements["try_lead"])).fetchone()
        return row is not None and bool(row[0])

    async def note_verified(self, connection: Connection, period: date, sha256: bytes) -> None:
        """The files are what the database has."""
        await connection.execute(self.statements["note_verified"], {"period": period, "sha256": sha256})

    async def forget_written(self, connection: Connection, period: date) -> None:
        """The files are not what the database has: they are written anew."""
        await connection.execute(self.statements["forget_written"], {"period": period})

    async def note_failure(self, connection: Connection, period: date, why: str) -> None:
        """`why` holds nothing of what is archived but ids and places."""
        await connection.execute(self.statements["note_failure"], {"period": period, "failure": why[:500]})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePass(ABC, Generic[P]):
    """One pass of a leader. The connection is in autocommit."""

    connection: Connection
    ledger: ArchiveLedger
    names: ArchiveNames
    folder: ArchivePath
    keyring: Keyring
    drop_tries: int
    result: ArchivePassResult

    @abstractmethod
    async def begin(self, period: P) -> ArchiveProgress:
        """Opens the period's row, or finds how far it came."""

    @abstractmethod
    async def write(self, period: P, prefix: str) -> Mapping[str, bytes]:
        """Writes the files, whose names begin so, publishes and notes them; answers their digests."""

    @abstractmethod
    async def verify(self, period: P, path: ArchivePath) -> None:
        """Compares what the files hold with the database. Raises NotVerifiedError."""

    async def may_leave(self, period: P, sha256: bytes) -> bool:  # noqa: ARG002 - for the archive that gives notice
        """Whether nothing but the tables' other users is in the way."""
        return True

    @abstractmethod
    async def leave(self, period: P, sha256: bytes) -> int:
        """Takes the period out of the database; how many of its bodies or shipments stay. Raises where a lock does not come at once."""

    async def archive(self, period: P, *, first: date, name: str) -> None:
        """Takes the period, which begins on the day `first`, as far as it goes now. Database errors pass through."""
        try:
            await self._archive(period, first, name)
        except ObjectStoreError as error:
            await self._failed(first, name, str(error))
        except OSError as error:
            await self._failed(first, name, f"the archive's folder: {errno.errorcode.get(error.errno or 0, 'error')}")
        except NotVerifiedError as error:
            await self.ledger.forget_written(self.connection, first)
            await self._failed(first, name, str(error))
        except PeriodFailedError as error:
            await self._failed(first, name, str(error))

    async def _archive(self, period: P, first: date, name: str) -> None:
        progress = await self.begin(period)
        epoch = (await read_epochs(self.connection)).current
        prefix, retained = self.names.prefix(self.keyring, name, epoch=epoch), next(iter(progress.digests), None)
        for path in await asyncio.to_thread(self.names.leftovers, self.folder, prefix, retained=retained):
            await asyncio.to_thread(remove, path)
        digests = progress.digests or await self.write(period, prefix)
        # also those that an earlier pass has verified: they may have suffered since
        for file_name, digest in digests.items():
            if fault := await asyncio.to_thread(file_fault, self.folder / file_name, digest):
                raise NotVerifiedError(f"{file_name}: {fault}")
        file_name, sha256 = next(iter(digests.items()))
        if not progress.verified:
            await self.verify(period, self.folder / file_name)
            await self.ledger.note_verified(self.connection, first, sha256)
        if await self.may_leave(period, sha256):
            await self._leave(period, first, name, sha256)

    async def _leave(self, period: P, first: date, name: str, sha256: bytes) -> None:
        try:
            stayed = await until_let_go(partial(self.leave, period, sha256), tries=self.drop_tries)
        except psycopg.Error as error:
            if failure(error) is Failure.NOT_ARCHIVED:
                raise NotVerifiedError(error.diag.message_primary or "refused") from error
            raise
        if stayed is None:
            self.result.busy.append(first)
            log.warning("archive_tables_busy", archive=self.names.subject, period=name)
        else:
            self.result.archived.append(first)
            log.info("period_archived", archive=self.names.subject, period=name, stayed=stayed)

    async def _failed(self, first: date, name: str, why: str) -> None:
        self.result.failed.append(first)
        await self.ledger.note_failure(self.connection, first, why)
        log.error("archive_failed", archive=self.names.subject, period=name, why=why)
