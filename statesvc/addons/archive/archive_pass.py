"""Archiving of bodies and of the log: a leader takes each period that is due through its steps.

```
begin > write > verify > [notice] > leave: the period is in files alone
          ^------- forget: the files are not what the database has
```
The place is held against the ledgers again and again (`archive_identity`): where that fails the
pass ends, and nothing leaves the database. Each step ends in the ledger before the next begins, so
a crash anywhere leaves what the next pass goes on from.
"""

import asyncio
import errno
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any, Final, Generic, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.addons.archive.archive_identity import ArchiveIdentity, ArchiveRefusedError
from statesvc.database.queries import Queries
from statesvc.database.sql_errors import Failure, failure
from statesvc.files.archive_folder import (
    ArchiveNames,
    ArchivePath,
    file_fault,
    read_back,
    remove,
    version_of,
)
from statesvc.files.object_path import ObjectStoreError
from statesvc.log.checkpoints import read_epochs

Connection = AsyncConnection[Any]
P = TypeVar("P")

log = structlog.get_logger()


class PeriodFailedError(RuntimeError):
    """A period cannot be archived now; it is tried again. The message holds ids and places only."""


class NotVerifiedError(PeriodFailedError):
    """A file differs from the database: it is written again."""


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """Progress of a period.

    `digests`: SHA-256 by file name, that of the file which leads to the others first;
    empty: none is written.
    """

    digests: Mapping[str, bytes]
    verified: bool


@dataclass(slots=True, kw_only=True)
class ArchivePassResult:
    """Result of a pass, by the first days of the periods.

    `busy`: verified periods whose tables are locked. `refused`: the reason why the place was
    refused, which ended the pass.
    """

    refused: str | None = None

    archived: list[date] = field(default_factory=list)
    busy: list[date] = field(default_factory=list)
    failed: list[date] = field(default_factory=list)


async def run_in_archive(
    identity: ArchiveIdentity, result: ArchivePassResult, steps: Callable[[], Awaitable[None]]
) -> None:
    """Run the steps of a pass as long as the place is the archive that the ledgers name."""
    try:
        await identity.require()
        # after the check: only a place that is the archive again ends the refusal that doctor shows
        await identity.end_refusal()
        await steps()
    except ArchiveRefusedError as error:
        result.refused = str(error)
        await identity.note_refusal(error)


@dataclass(frozen=True, slots=True)
class ArchiveLedger:
    """The steps that every ledger has, each a statement of its own."""

    statements: Queries

    async def try_lead(self, connection: Connection) -> bool:
        """Return whether this session (past any pooler) is the archiver until it ends."""
        await connection.execute(self.statements["limit_session"])
        row = await (await connection.execute(self.statements["try_lead"])).fetchone()
        return row is not None and bool(row[0])

    async def note_verified(self, connection: Connection, period: date, sha256: bytes) -> None:
        await connection.execute(
            self.statements["note_verified"], {"period": period, "sha256": sha256}
        )

    async def forget_written(self, connection: Connection, period: date) -> None:
        """Note that the files differ from the database: they are written again."""
        await connection.execute(self.statements["forget_written"], {"period": period})

    async def note_failure(self, connection: Connection, period: date, why: str) -> None:
        """Note a failure. `why` holds ids and places only."""
        await connection.execute(
            self.statements["note_failure"], {"period": period, "failure": why[:500]}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePass(ABC, Generic[P]):
    """A pass of a leader."""

    identity: ArchiveIdentity
    ledger: ArchiveLedger
    names: ArchiveNames
    drop_tries: int
    result: ArchivePassResult

    @property
    def connection(self) -> Connection:
        """Connection in autocommit."""
        return self.identity.connection

    @property
    def folder(self) -> ArchivePath:
        return self.identity.folder

    @property
    def keyring(self) -> Keyring:
        return self.identity.keyring

    @abstractmethod
    async def begin(self, period: P) -> ArchiveProgress:
        """Open the period's row, or find how far it came."""

    @abstractmethod
    async def write(self, period: P, prefix: str) -> Mapping[str, bytes]:
        """Write files with this prefix, publish and note them; return their digests."""

    @abstractmethod
    async def verify(self, period: P, path: ArchivePath) -> None:
        """Compare the files with the database. Raises NotVerifiedError."""

    # for the archive that gives notice
    async def may_leave(self, period: P, sha256: bytes) -> bool:  # noqa: ARG002
        """Return whether only other users of the tables are in the way."""
        return True

    @abstractmethod
    async def leave(self, period: P, sha256: bytes) -> int:
        """Take the period out of the database; return how many of its bodies or shipments stay.

        Raises where a lock does not come at once.
        """

    async def archive(self, period: P, *, first: date, name: str) -> None:
        """Take the period, which begins on the day `first`, as far as it goes now.

        Raises ArchiveRefusedError, psycopg.Error.
        """
        try:
            await self._archive(period, first, name)
        except ObjectStoreError as error:
            await self._failed(first, name, str(error))
        except OSError as error:
            code = errno.errorcode.get(error.errno or 0, "error")
            await self._failed(
                first,
                name,
                f"the archive's folder: {code} ({error.strerror or type(error).__name__})",
            )
        except NotVerifiedError as error:
            # before the failure is noted: the next pass writes the files again instead of comparing
            # them again
            await self.ledger.forget_written(self.connection, first)
            await self._failed(first, name, str(error))
        except PeriodFailedError as error:
            await self._failed(first, name, str(error))

    async def _archive(self, period: P, first: date, name: str) -> None:
        await self.identity.require()
        progress = await self.begin(period)
        epoch = (await read_epochs(self.connection)).current
        prefix, retained = (
            self.names.prefix(self.keyring, name, epoch=epoch),
            next(iter(progress.digests), None),
        )
        for path in await asyncio.to_thread(
            # of a pass that died while it wrote: without names in the ledger nobody else would
            # remove them
            self.names.leftovers,
            self.folder,
            prefix,
            retained=retained,
        ):
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
            await self._leave(period, first, name, digests)

    async def _leave(self, period: P, first: date, name: str, digests: Mapping[str, bytes]) -> None:
        # at each period: a volume may be unmounted in the middle of a pass
        await self.identity.require()
        # from the disk, not from the page cache: what is in memory is not yet archived
        versions = await asyncio.to_thread(self._read_back, digests)
        try:
            stayed = await until_let_go(
                partial(self._leave_if_held, period, digests, versions), tries=self.drop_tries
            )
        except psycopg.Error as error:
            # the database checks the ledger itself before it drops a partition; this pass believed
            # otherwise
            if failure(error) is Failure.NOT_ARCHIVED:
                raise NotVerifiedError(error.diag.message_primary or "refused") from error
            raise
        if stayed is None:
            self.result.busy.append(first)
            log.warning("archive_tables_busy", archive=self.names.subject, period=name)
        else:
            self.result.archived.append(first)
            log.info("period_archived", archive=self.names.subject, period=name, stayed=stayed)

    def _read_back(self, digests: Mapping[str, bytes]) -> list[tuple[object, ...]]:
        """Return the files' versions, once the disk has them as they were written."""
        versions = []
        for file_name, digest in digests.items():
            try:
                # before the bytes: a file replaced while it is read has another version than the
                # one noted
                versions.append(version_of(self.folder / file_name))
                if read_back(self.folder / file_name) != digest:
                    raise NotVerifiedError(
                        f"{file_name}: its bytes are not those that were written"
                    )
            except FileNotFoundError as error:
                raise NotVerifiedError(f"{file_name}: it is missing") from error
        return versions

    async def _leave_if_held(
        self, period: P, digests: Mapping[str, bytes], versions: list[tuple[object, ...]]
    ) -> int:
        # once more, as close to the drop as possible
        await self.identity.require()
        if (
            await asyncio.to_thread(
                lambda: [version_of(self.folder / file_name) for file_name in digests]
            )
            != versions
        ):
            raise PeriodFailedError(f"{next(iter(digests))} was replaced after it was read back")
        return await self.leave(period, next(iter(digests.values())))

    async def _failed(self, first: date, name: str, why: str) -> None:
        self.result.failed.append(first)
        await self.ledger.note_failure(self.connection, first, why)
        log.error("archive_failed", archive=self.names.subject, period=name, why=why)


TRIES: Final = 20
_AGAIN_SECONDS: Final = 0.5
T = TypeVar("T")


async def until_let_go(take: Callable[[], Awaitable[T]], *, tries: int) -> T | None:
    """Return the result of `take`; None: the locks were held at every attempt.

    Each lock is requested briefly and repeatedly, so that no transaction waits behind it for long.

    Other than transient errors pass through.
    """
    for attempt in range(tries):
        try:
            return await take()
        except psycopg.Error as error:
            # only a lock that is held passes by itself
            if failure(error) is not Failure.TRANSIENT:
                raise
        # no wait behind the last try: the next pass tries again anyway
        if attempt + 1 < tries:
            await asyncio.sleep(_AGAIN_SECONDS)
    return None
