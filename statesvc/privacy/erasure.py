"""Erasing a shipment: its key is destroyed, so its sealed personal data is unreadable for ever.

The key goes in one transaction with the operator action that names the actor and the reason. Dead
letters that name the number are erased after that: they could not be parsed, so their bodies are
sealed under the inbox key, not a shipment's.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring, body_context
from events.crypto.sealing import SealError, unsalted
from events.identity.ids import shipment_id
from events.identity.recipes import discriminator_of, number_of
from events.spelling import normalize_number, stands_alone
from statesvc.bodies.find_bodies import find_bodies
from statesvc.database.queries import queries
from statesvc.files.archive_folder import ArchivePath
from statesvc.log.actions import ERASE, SHIPMENT, Action, record_actions
from statesvc.log.tombstones import Tombstone, TombstoneKind, Tombstones
from statesvc.reading.trials import erase_trials
from statesvc.shipments.awaited import forget_awaited
from statesvc.shipments.references import AttachedTo, erase_references
from statesvc.subscriptions.key_revocation import revoke_key

_SQL = queries("statesvc.privacy", "erasure")
Connection = AsyncConnection[Any]

DEAD_LETTERS_AT_ONCE: Final = 200
_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")
# A number with fewer distinct characters may be part of any other text. It matches only where it is
# not part of a longer number.
_DISTINCT_CHARACTERS_MIN: Final = 8


class UnderLegalHoldError(RuntimeError):
    """The shipment is under a legal hold; only an explicit override erases it."""

    def __init__(self) -> None:
        super().__init__(
            "this number is under a legal hold: release it first, or override it explicitly"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A request for erasure. The log keeps `why`: no personal data there.

    `discriminator` None: every shipment with the number, and the bare number for messages
    without a discriminator. The number may be unknown. `backup_days`: how long copies of the
    key may be left in backups.
    """

    carrier_id: str
    tracking_number: str
    why: str
    actor: str
    discriminator: str | None = None
    override_hold: bool = False
    backup_days: int

    @property
    def number(self) -> str:
        return number_of(self.carrier_id, self.tracking_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """`shipments` lost their key now; `already` had none before.

    `complete_at`: when the last backup that holds a key expires.

    `tombstones`: of all of them. It is not complete before they are published.
    """

    shipments: list[UUID]
    already: list[UUID]
    complete_at: datetime
    tombstones: list[Tombstone]


async def erase(connection: Connection, erasure: Erasure) -> Erased:
    """Destroy the keys. Idempotent. Raises UnderLegalHoldError.

    The caller must publish the tombstones before it reports success.
    """
    async with connection.transaction():
        discriminator = discriminator_of(erasure.carrier_id, erasure.discriminator)
        cursor = await connection.execute(
            _SQL["streams_of_number"],
            {
                "carrier_id": erasure.carrier_id,
                "number": erasure.number,
                "discriminator": discriminator,
            },
        )
        streams = dict(await cursor.fetchall())
        bare = discriminator or ""
        # also if it does not exist yet: a stream without a key keeps a later push from making one
        streams.setdefault(shipment_id(erasure.carrier_id, erasure.number, bare), bare)
        held = await (
            await connection.execute(_SQL["under_legal_hold"], {"shipment_ids": list(streams)})
        ).fetchone()
        # before any key is destroyed: an erasure under a hold changes nothing
        if held == (True,) and not erasure.override_hold:
            raise UnderLegalHoldError
        complete_at = await (
            await connection.execute(_SQL["backups_expire"], {"days": erasure.backup_days})
        ).fetchone()
        assert complete_at is not None  # noqa: S101 - one row, always
        # for those that were erased before, too: a publication that failed is made up for
        tombstones = [
            _tombstone(erasure, each, of_stream) for each, of_stream in sorted(streams.items())
        ]
        erased = Erased(shipments=[], already=[], complete_at=complete_at[0], tombstones=tombstones)
        # one at a time, in their order: as every append locks them
        for each, of_stream in sorted(streams.items()):
            stream = {
                "shipment_id": each,
                "carrier_id": erasure.carrier_id,
                "number": erasure.number,
                "discriminator": of_stream,
            }
            done = await connection.execute(_SQL["destroy_key"], stream)
            (erased.shipments if done.rowcount else erased.already).append(each)
        # pending trials hold readings in clear
        await erase_trials(connection, streams)
        awaited = await forget_awaited(
            connection,
            AttachedTo(erasure.carrier_id, erasure.number),
            actor=erasure.actor,
            why={"why": erasure.why},
        )
        await erase_references(
            connection,
            AttachedTo(erasure.carrier_id, erasure.number),
            others_go_on="" not in streams.values(),
        )
        details = {
            "why": erasure.why,
            "carrier_id": erasure.carrier_id,
            "hold_overridden": held == (True,),
            "backup_days": erasure.backup_days,
        }
        # last: it takes the batch's time and id, after all locks
        await record_actions(
            connection,
            [
                *(
                    Action(
                        actor=erasure.actor, verb=ERASE, target=f"{SHIPMENT}{each}", details=details
                    )
                    for each in erased.shipments
                ),
                *awaited,
            ],
        )
    return erased


def _tombstone(erasure: Erasure, shipment: UUID, discriminator: str) -> Tombstone:
    details = {
        "carrier_id": erasure.carrier_id,
        "number": erasure.number,
        "discriminator": discriminator,
        "why": erasure.why,
    }
    return Tombstone(kind=TombstoneKind.SHIPMENT, subject=str(shipment), details=details)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSearch:
    """Search of a carrier's dead letters for a number.

    `folder`: the archive, where bodies may be by now.
    """

    carrier_id: str
    number: str
    actor: str
    keyring: Keyring
    folder: ArchivePath | None


@dataclass(slots=True)
class ErasedDeadLetters:
    """`named` of the dead letters searched lost their key.

    `next_after`: where to go on; None: all were searched.
    """

    searched: int = 0
    named: int = 0
    next_after: int | None = None


async def erase_dead_letters(
    connection: Connection, search: DeadLetterSearch, *, after: int = 0
) -> ErasedDeadLetters:
    """Search the bodies of the next dead letters, and take the keys of those that name the number.

    Safe to stop, and to run again.
    """
    cursor = await connection.execute(
        _SQL["sealed_dead_letters"],
        {"carrier_id": search.carrier_id, "after": after, "limit": DEAD_LETTERS_AT_ONCE},
        binary=True,
    )
    found = await cursor.fetchall()
    if not found:
        return ErasedDeadLetters()
    bodies = await find_bodies(
        connection,
        search.folder,
        [(message_id, received_at) for _, message_id, received_at, _ in found],
    )
    naming = []
    for dead_letter_id, message_id, _, sealed_key in found:
        body = bodies.get(message_id)
        # its day was archived and then removed: there is nothing left to open
        if body is None:
            continue
        try:
            key = search.keyring.inbox.unwrap(sealed_key, body_context(message_id))
            text = unsalted(key.open(body.sealed, body_context(message_id)))
        except SealError:
            # nobody opens it: nothing personal is left in it
            continue
        if names(text, search.number):
            naming.append(dead_letter_id)
    if naming:
        await connection.execute(
            _SQL["erase_dead_letters"], {"dead_letter_ids": naming, "actor": search.actor}
        )
    return ErasedDeadLetters(
        searched=len(found),
        named=len(naming),
        next_after=found[-1][0] if len(found) == DEAD_LETTERS_AT_ONCE else None,
    )


def names(body: bytes, number: str) -> bool:
    """Return whether an unparsed body holds the number.

    In any of the encodings that carriers send and any spelling of the number.
    """
    # the body could not be parsed, so its encoding is not known either
    texts = (body.decode(encoding, "ignore") for encoding in _ENCODINGS)
    # a short number occurs in most bodies by chance: then only where it stands alone
    if len(number) < _DISTINCT_CHARACTERS_MIN:
        return any(stands_alone(number, text) for text in texts)
    return any(number in normalize_number(text) for text in texts)


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
