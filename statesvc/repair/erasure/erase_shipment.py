"""Erasing a shipment: its key goes, in one transaction with the operator action that says who did it and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.identity import normalize_number
from statesvc.database.queries import queries
from statesvc.log.actions import Action, record_actions

_SQL = queries("statesvc.repair.erasure", "erase_shipment")
Connection = AsyncConnection[Any]

VERB: Final = "erase"


class NothingToEraseError(RuntimeError):
    """No shipment bears the number (and the discriminator)."""


class UnderLegalHoldError(RuntimeError):
    """A legal hold stands on the shipment; only an explicit override erases it."""

    def __init__(self) -> None:
        super().__init__("a legal hold stands on this number: release it first, or override it explicitly")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What to erase. `discriminator` None: every shipment that bears the number. The log keeps `why`: no personal data there.

    `backup_days`: how long copies of the key may be left in backups.
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
        """As it is compared."""
        return normalize_number(self.tracking_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """`shipments` lost their key now; `already` had none before. `complete_at`: when the last backup that holds a key expires."""

    shipments: list[UUID]
    already: list[UUID]
    complete_at: datetime


async def erase(connection: Connection, erasure: Erasure) -> Erased:
    """Destroys the keys. Idempotent. Raises NothingToEraseError, UnderLegalHoldError."""
    async with connection.transaction():
        cursor = await connection.execute(
            _SQL["streams_of_number"],
            {"carrier_id": erasure.carrier_id, "number": erasure.number, "discriminator": erasure.discriminator},
        )
        streams = await cursor.fetchall()
        if not streams:
            raise NothingToEraseError(f"no shipment of {erasure.carrier_id} bears this number")
        held = await (
            await connection.execute(_SQL["under_legal_hold"], {"shipment_ids": [shipment_id for shipment_id, _, _ in streams]})
        ).fetchone()
        if held == (True,) and not erasure.override_hold:
            raise UnderLegalHoldError
        complete_at = await (await connection.execute(_SQL["backups_expire"], {"days": erasure.backup_days})).fetchone()
        assert complete_at is not None  # noqa: S101 - one row, always
        erased = Erased(shipments=[], already=[], complete_at=complete_at[0])
        # one at a time, in their order: as every append locks them
        for shipment_id, _, _ in streams:
            done = await connection.execute(_SQL["destroy_key"], {"shipment_id": shipment_id})
            (erased.shipments if done.rowcount else erased.already).append(shipment_id)
        details = {
            "why": erasure.why,
            "carrier_id": erasure.carrier_id,
            "hold_overridden": held == (True,),
            "backup_days": erasure.backup_days,
        }
        await record_actions(
            connection,
            [Action(actor=erasure.actor, verb=VERB, target=f"shipment {each}", details=details) for each in erased.shipments],
        )
    return erased
