"""Replaying erasures and revocations of API keys after a restore, from tombstones.

The tombstones lie outside the database.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.tombstones import Tombstone, TombstoneKind, Tombstones
from statesvc.privacy.erasure import DeadLetterSearch, Erasure, erase, erase_dead_letters
from statesvc.subscriptions.key_revocation import revoke_key

_SQL = queries("statesvc.privacy", "replay_tombstones")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTask:
    """`folder`: the archive of bodies.

    `backup_days`: how long copies of a key may be left in backups.
    """

    tombstones: Tombstones
    keyring: Keyring
    folder: ArchivePath | None
    actor: str
    backup_days: int


@dataclass(slots=True)
class ReplayedTombstones:
    """Tombstones of erasures and revocations that the restore had undone."""

    erased: list[UUID] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    retired: list[bytes] = field(default_factory=list)
    """Ids of signing keys that must not sign again: a fork retires them."""


async def replay_tombstones(
    connection: AsyncConnection[Any], task: ReplayTask
) -> ReplayedTombstones:
    """Replay the tombstones, each in its own transaction, as it was done at first; safe to run
    again. Raises TombstoneError.
    """
    replayed = ReplayedTombstones()
    for tombstone in await task.tombstones.read():
        match tombstone.kind:
            case TombstoneKind.SHIPMENT:
                replayed.erased += await _erase(connection, task, tombstone)
            case TombstoneKind.API_KEY:
                if (
                    await revoke_key(connection, key_id=tombstone.subject, revoked_by=task.actor)
                    is not None
                ):
                    replayed.revoked.append(tombstone.subject)
            case TombstoneKind.LOG_KEY:
                replayed.retired.append(bytes.fromhex(tombstone.subject))
    return replayed


async def _erase(
    connection: AsyncConnection[Any], task: ReplayTask, tombstone: Tombstone
) -> list[UUID]:
    row = await (
        await connection.execute(_SQL["is_erased"], {"shipment_id": tombstone.subject})
    ).fetchone()
    if row == (True,):
        return []
    erasure = Erasure(
        carrier_id=tombstone.details["carrier_id"],
        tracking_number=tombstone.details["number"],
        discriminator=tombstone.details["discriminator"],
        why=f"erased before the restore: {tombstone.details['why']}",
        actor=task.actor,
        # whether a hold stood in its way was decided then
        override_hold=True,
        backup_days=task.backup_days,
    )
    erased = await erase(connection, erasure)
    search = DeadLetterSearch(
        carrier_id=erasure.carrier_id,
        number=erasure.number,
        actor=task.actor,
        keyring=task.keyring,
        folder=task.folder,
    )
    after: int | None = 0
    while after is not None:
        after = (await erase_dead_letters(connection, search, after=after)).next_after
    return erased.shipments
