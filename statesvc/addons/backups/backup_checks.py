"""Checks of backups: write-ahead log, base backups, and files outside the database. Reads only."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.sealing import SealError
from events.merkle.checkpoint import NoteError, read_checkpoint
from statesvc.cli.doctor.log_checks import check_tombstones
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.kms.kms import KmsError
from statesvc.database.queries import queries
from statesvc.health.finding import Finding, fail, ok, warn
from statesvc.log.checkpoint_store import CheckpointStoreError, checkpoint_store_at, read_published
from statesvc.log.checkpoints import latest_head
from statesvc.roles.master_key import key_sources, open_sources
from statesvc.seams import parts
from statesvc.settings.service_settings import Settings

_MB: Final = 1_000_000
LATE_SECONDS: Final = 300.0
# A week and a day: a restore must replay the log since then.
BASE_DAYS_MAX: Final = 8
_WAL: Final = "write-ahead log"
_BASE: Final = "base backup"
_PROVIDED: Final = "provider's backups"
_KEY: Final = "master key"
_HEADS: Final = "published heads"

_SQL = queries("statesvc.addons.backups", "backup_checks")


@dataclass(frozen=True, slots=True)
class WalArchiving:
    """State of the server's archiving.

    Seconds are ages; None: never. `waiting_bytes`: in no archived file yet.
    """

    is_on: bool
    archived: str | None
    archived_seconds: float | None
    failed: str | None
    failed_seconds: float | None
    waiting_bytes: float | None
    file_bytes: float
    timeout_seconds: int
    is_streamed: bool


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
    """A replication slot. `status` is that of `pg_replication_slots`."""

    name: str
    behind_bytes: float
    status: str
    is_active: bool


async def check_backup(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    """Check everything that the database, the settings and the places outside say."""
    provided_days = settings.keys.backup_provider_days
    if provided_days is not None:
        yield check_provider(provided_days, backup_days=settings.keys.backup_days)
    else:
        row = await (await connection.execute(_SQL["archiving"])).fetchone()
        for finding in () if row is None else check_archiving(WalArchiving(*row)):
            yield finding
    slots = [
        ReplicationSlot(*slot)
        for slot in await (await connection.execute(_SQL["slots"])).fetchall()
    ]
    for finding in check_slots(slots):
        yield finding
    if provided_days is None:
        yield await _checksums(connection)
    yield await _master_key(connection, settings)
    async for finding in _published_heads(connection, settings):
        yield finding
    yield await check_tombstones(settings)
    for check in parts("doctor"):
        async for finding in check(connection, settings):
            yield finding


def check_archiving(found: WalArchiving) -> Iterator[Finding]:
    """Check whether a restore can go on from a base backup, and how near to the end it comes."""
    if not found.is_on:
        if found.is_streamed:
            yield warn(
                _WAL,
                "not archived by the server; someone streams it from a slot: a restore needs it to"
                " be pg_receivewal, not a standby",
            )
        else:
            yield fail(
                _WAL,
                "not archived (archive_mode, archive_command): a restore would lose everything"
                " since the last base backup",
            )
        return
    if found.failed_seconds is not None and (
        found.archived_seconds is None or found.failed_seconds < found.archived_seconds
    ):
        yield fail(
            _WAL,
            f"archiving fails: {found.failed} could not be archived {found.failed_seconds:,.0f} s"
            " ago; the server's log says why, and the disk fills until it can",
        )
    elif found.archived_seconds is None:
        yield fail(_WAL, "nothing was archived yet: `SELECT pg_switch_wal()` makes the server try")
    elif (
        found.waiting_bytes or 0
    ) > 2 * found.file_bytes and found.archived_seconds > LATE_SECONDS:
        yield fail(
            _WAL,
            f"{(found.waiting_bytes or 0) / _MB:,.0f} MB are not archived; the last file was,"
            f" {found.archived_seconds:,.0f} s ago",
        )
    else:
        yield ok(_WAL, f"archived up to {found.archived}, {found.archived_seconds:,.0f} s ago")
    if found.timeout_seconds == 0:
        yield warn(
            _WAL,
            f"archive_timeout is 0: what is in an open file of {found.file_bytes / _MB:,.0f} MB is"
            " lost with the disk; 60s is usual",
        )


def check_provider(days: int, *, backup_days: int) -> Finding:
    """Check the stated range of a provider's backups.

    `backup_days`: the retention that erasures state.
    """
    stated = (
        f"the provider restores any time of the last {days} days, as STATESVC_BACKUP_PROVIDER_DAYS"
        " states; nothing here can check it"
    )
    if days > backup_days:
        retained = (
            f"STATESVC_BACKUP_DAYS is {backup_days}: what was erased can be read from its backups"
            " for longer than erasures say"
        )
        return warn(_PROVIDED, f"{stated}. {retained}")
    return ok(_PROVIDED, f"{stated}: try a restore each quarter")


def check_slots(slots: Sequence[ReplicationSlot]) -> Iterator[Finding]:
    """Check for a lost reader that fills the disk, and for a reader that was left behind."""
    for slot in slots:
        if slot.status == "lost":
            yield fail(
                "replication slots",
                f"{slot.name} lost what it needs: its reader must begin anew, from a base backup",
            )
        elif not slot.is_active:
            held = (
                f"{slot.name} has no reader and holds {slot.behind_bytes / _MB:,.0f} MB of the"
                " write-ahead log"
            )
            yield warn(
                "replication slots",
                f"{held}: start the reader, or drop the slot (docs/runbook/DiskFilling.md)",
            )
    if all(slot.is_active and slot.status != "lost" for slot in slots):
        yield ok("replication slots", f"{len(slots)}, none of them without its reader")


def check_base_backups(
    ended: Sequence[datetime], *, now: datetime, backup_days: int
) -> Iterator[Finding]:
    """Check the base backups. `ended`: when each did, oldest first.

    `backup_days`: for how long erasures say that the oldest is retained.
    """
    if not ended:
        yield fail(
            _BASE, "there is none: without one the archived write-ahead log restores nothing"
        )
        return
    newest, oldest = now - ended[-1], now - ended[0]
    text = f"{len(ended)}, the newest ended {newest.total_seconds() / 3600:,.1f} h ago"
    yield (
        warn(_BASE, f"{text}: everything since is replayed in a restore")
        if newest.days >= BASE_DAYS_MAX
        else ok(_BASE, text)
    )
    if oldest.days > backup_days:
        yield warn(
            _BASE,
            f"the oldest ended {oldest.days} days ago, STATESVC_BACKUP_DAYS is {backup_days}: what"
            " was erased can be read from it for longer than erasures say",
        )


def unknown_base_backups() -> Finding:
    """Warn that the place of the base backups is not set."""
    return warn(
        _BASE,
        "the database does not know of any: say --stanza NAME (pgBackRest) or --base-backups FOLDER"
        " (pg_basebackup)",
    )


async def _checksums(connection: AsyncConnection[Any]) -> Finding:
    row = await (await connection.execute(_SQL["has_checksums"])).fetchone()
    if row is not None and row[0]:
        return ok("data checksums", "on: a backup tool notices a page that the disk altered")
    return warn(
        "data checksums",
        "off: a page that the disk altered goes into every backup unnoticed (pg_checksums --enable,"
        " server stopped)",
    )


async def _master_key(connection: AsyncConnection[Any], settings: Settings) -> Finding:
    made = await (await connection.execute(_SQL["has_keys"])).fetchone()
    try:
        sources = key_sources(settings)
        # loading would make them
        if made is not None and made[0]:
            await load_keyring(connection, await open_sources(sources, connection))
    except (KmsError, MasterKeyError, SealError) as error:
        return fail(
            _KEY,
            f"{error}; without it no body, name or signature in a restored database can be read",
        )
    if sources.kms is not None:
        return ok(_KEY, f"held by the KMS ({sources.kms.name}): the KMS needs a backup of its own")
    if settings.keys.master_key is None:
        return warn(
            _KEY,
            f"a file in {settings.database.data_dir}, and in no backup of the database: store a"
            " copy elsewhere",
        )
    return ok(
        _KEY,
        "comes from outside the database, and opens its keys: store it where the backups are not",
    )


async def _published_heads(
    connection: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[Finding]:
    head = await latest_head(connection)
    size = 0 if head is None else head.tree_size
    file, place = settings.checkpoint_file, settings.checkpoint.publish
    if file is None and place is None:
        yield fail(
            _HEADS,
            "none outside the database (STATESVC_CHECKPOINT_PUBLISH,"
            " STATESVC_SEALER_CHECKPOINT_FILE): after a restore the log would go on differently,"
            " and nobody would notice",
        )
    if file is not None:
        try:
            yield _head(str(file), read_published(file), size)
        except OSError as error:
            yield fail(_HEADS, f"{file} cannot be read: {error.strerror}")
    if place is not None:
        try:
            yield _head(place.partition("?")[0], await checkpoint_store_at(place).latest(), size)
        except CheckpointStoreError as error:
            yield fail(_HEADS, str(error))
    elif file is not None:
        yield warn(
            _HEADS,
            f"{file} alone is one machine's: where its disk dies with the database's, nothing says"
            " what was lost; set STATESVC_CHECKPOINT_PUBLISH",
        )


def _head(where: str, note: str | None, size: int) -> Finding:
    """Check a head. `size`: entries under the newest head that the database has."""
    if note is None:
        return (fail if size else ok)(
            _HEADS, f"{where} has none" + ("" if size else "; nothing was sealed yet")
        )
    try:
        published = read_checkpoint(note).size
    except NoteError as error:
        return fail(_HEADS, f"what lies in {where} is no head: {error}")
    if published > size:
        return fail(
            _HEADS,
            f"{where} has {published:,} entries, the database {size:,}: it was restored, run"
            " docs/restore.md",
        )
    return ok(_HEADS, f"{where} has {published:,} of {size:,} entries")
