"""The trials of foreign candidates: leased by the candidate's fleet, compared by a Python worker.

They are written with a message's verdict. They have no effect, so all of them may be lost; an
erasure deletes their copies of messages. Bounded: by rows a carrier, and an hour.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from events.event import value
from statesvc.database.queries import Sender, columns, queries
from statesvc.queue.claim import Message, Settlement
from statesvc.reading.read_message import NORMALIZED

_SQL = queries("statesvc.reading", "pending_trials")
TRIALS_RETAINED: Final = 10_000
_NO_TOKEN: Final = UUID(int=0)
_COLUMNS: Final = ("message_ids", "candidates", "shipments")
Connection = AsyncConnection[Any]


async def write_trials(connection: Sender, tried: Sequence[tuple[str, Settlement]]) -> None:
    """Have these candidates try messages that this transaction is about to settle.

    Messages with a body that cannot be opened are left out.
    """
    rows = [
        (
            settlement.message_id,
            candidate,
            ",".join([shipment_id.hex for shipment_id in settlement.shipments]),
        )
        for candidate, settlement in tried
        if settlement.sealed_key is not None
    ]
    if rows:
        await connection.execute(_SQL["write_trials"], columns(rows, _COLUMNS))


async def drop_trials(
    connection: Connection, carrier_ids: Iterable[str], *, worker: str, keep: int = TRIALS_RETAINED
) -> None:
    """Drop and count trials that are over or beyond the bound, the oldest first."""
    for carrier_id in sorted(carrier_ids):
        await connection.execute(
            _SQL["drop_trials"], {"carrier_id": carrier_id, "worker": worker, "keep": keep}
        )


@value(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A trial with its candidate's verdict. `handed_over` None: it declined."""

    trial_id: int
    message_id: UUID
    carrier_id: str
    received_at: datetime
    candidate: str
    sealed_key: bytes = field(repr=False)
    stable: str | None
    stable_handed_over: bytes | None = field(repr=False)
    handed_over: bytes | None = field(repr=False)
    commitment: bytes | None = field(repr=False)
    sealed: bytes | None = field(repr=False)

    def as_stable_read(self) -> Message | None:
        """Return the message as it took effect; None: its body is gone."""
        return self._message(self.stable, self.stable_handed_over)

    def as_candidate_read(self) -> Message | None:
        """Return the message as the candidate handed it over; None: it declined, or the body is
        gone.
        """
        return None if self.handed_over is None else self._message(self.candidate, self.handed_over)

    def _message(self, reader: str | None, handed_over: bytes | None) -> Message | None:
        if self.sealed is None or self.commitment is None:
            return None
        return Message(
            message_id=self.message_id,
            carrier_id=self.carrier_id,
            token=_NO_TOKEN,
            attempts=1,
            retries=0,
            received_at=self.received_at,
            stage="raw" if handed_over is None else NORMALIZED,
            candidate=self.candidate,
            percent=0,
            shadow=True,
            sealed_key=self.sealed_key,
            commitment=self.commitment,
            sealed=self.sealed,
            normalized_by=None if handed_over is None else reader,
            normalized=handed_over,
            stable=self.stable,
        )


_FIELDS: Final = (
    "trial_id",
    "message_id",
    "carrier_id",
    "received_at",
    "candidate",
    "sealed_key",
    "stable",
    "stable_handed_over",
    "handed_over",
    "commitment",
    "sealed",
)


async def lock_handed_over(connection: Connection, *, limit: int) -> list[HandedOver]:
    """Lock the next trials to compare, for this transaction, which ends with `forget_trials`."""
    cursor = await connection.execute(_SQL["lock_handed_over"], {"limit": limit})
    return [HandedOver(**dict(zip(_FIELDS, row, strict=True))) for row in await cursor.fetchall()]


async def forget_trials(connection: Connection, trial_ids: Sequence[int]) -> None:
    await connection.execute(_SQL["forget_trials"], {"trial_ids": list(trial_ids)})


async def any_trial(connection: Connection) -> bool:
    row = await (await connection.execute(_SQL["any_trial"])).fetchone()
    return row is not None and bool(row[0])


async def erase_trials(connection: Connection, shipment_ids: Iterable[UUID]) -> None:
    """Delete the trials of messages that name these shipments, with their handed-over events."""
    await connection.execute(_SQL["erase_trials"], {"shipment_ids": list(shipment_ids)})
