"""Incidents of the service as notifications `operator.*`, to the subscriptions that ask for them.

A pass compares what is wrong now with the open incidents, under a lock. One transaction opens and
closes incidents, records each as an action, and puts its notification into the outbox; an
incident's key is unique, so neither its beginning nor its end is sent twice, whoever dies between.
The end goes to the subscriptions that got the beginning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID, uuid4

import orjson
from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from projections.notification_type import NotificationType, is_of_operator
from statesvc.append.outbox import OutboxChange, fanout_of, write_notifications
from statesvc.database.queries import queries
from statesvc.delivery.event_catalogue import INCIDENT_PAGES
from statesvc.delivery.notification_data import OperatorData
from statesvc.health.database_sample import UNSEALED_SECONDS_MAX
from statesvc.log.actions import Action, append_actions
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.log.fanouts import append_fanouts
from statesvc.notifier.policy import ACTOR

TYPES: Final = [kind.value for kind in NotificationType if is_of_operator(kind)]
# The end waits for the notification of the beginning.
_SEQUENCES: Final = {"open": -2, "recovered": -1}
_VERBS: Final = {"open": "incident.open", "recovered": "incident.recover"}
_BOUNDS: Final = {"unsealed_seconds": UNSEALED_SECONDS_MAX, "spooled_seconds": 60.0}
_SQL = queries("statesvc.notifier", "operator_incidents")

Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _IncidentChange:
    """Beginning or end of an incident, for these subscriptions."""

    state: Literal["open", "recovered"]
    type: str
    target: str
    since: datetime
    text: str = "it is over"
    incident_id: UUID
    subscriptions: Sequence[UUID]

    @property
    def data(self) -> OperatorData:
        return {
            "incident_id": self.incident_id,
            "state": self.state,
            "target": self.target,
            "since": rfc3339(self.since),
            "text": self.text,
            "page": INCIDENT_PAGES[self.type],
        }

    @property
    def action(self) -> Action:
        details = {**self.data, "incident_id": str(self.incident_id), "type": self.type}
        return Action(actor=ACTOR, verb=_VERBS[self.state], target=self.target, details=details)

    def change(self, leaf_hash: bytes, recorded_at: datetime) -> OutboxChange:
        # 0.1's notifier reads the other members of an observation
        observed = {"version": 0, "cause": self.target, "hours": 0, "incident": self.data}
        return OutboxChange(
            shipment_id=self.incident_id,
            sequence=_SEQUENCES[self.state],
            type=self.type,
            carrier_id="",
            number="",
            tracking_number="",
            from_status="",
            to_status=self.state,
            recorded_at=recorded_at,
            occurred_at=recorded_at,
            leaf_hash=leaf_hash,
            observed=orjson.dumps(observed).decode(),
        )


async def notify_operators(connection: Connection, *, writer: str) -> int:
    """Run a pass. Returns how many notifications it made; the caller wakes `OUTBOX` and `LOG`."""
    async with connection.transaction():
        if await _rows(connection, "lock") != [(True,)]:
            return 0
        asking = await _rows(connection, "asking", {"types": TYPES})
        present = {
            (kind, target): (since, text)
            for kind, target, since, text in await _rows(connection, "present", _BOUNDS)
        }
        known = {row[:2]: row[2:] for row in await _rows(connection, "open")}
        live = {subscription_id for subscription_id, _ in asking}
        begun = [
            _IncidentChange(
                state="open",
                type=kind,
                target=target,
                since=since,
                text=text,
                incident_id=uuid4(),
                subscriptions=receivers,
            )
            for (kind, target), (since, text) in sorted(present.items())
            if (kind, target) not in known
            and (receivers := [each for each, types in asking if kind in types])
        ]
        ended = [
            _IncidentChange(
                state="recovered",
                type=kind,
                target=target,
                since=since,
                incident_id=incident_id,
                subscriptions=[each for each in subscriptions if each in live],
            )
            for (kind, target), (since, incident_id, subscriptions) in sorted(known.items())
            if (kind, target) not in present
        ]
        if not begun and not ended:
            return 0
        for turn in begun:
            await connection.execute(
                _SQL["begin"],
                {
                    "type": turn.type,
                    "target": turn.target,
                    "since": turn.since,
                    "incident_id": turn.incident_id,
                    "subscriptions": list(turn.subscriptions),
                },
            )
        await connection.execute(
            _SQL["end"], {"incident_ids": [turn.incident_id for turn in ended]}
        )
        return await _notify(connection, [*begun, *ended], writer)


async def _notify(connection: Connection, turns: Sequence[_IncidentChange], writer: str) -> int:
    """Record the turns, with their fan-outs before them as in every batch."""
    sent = [turn for turn in turns if turn.subscriptions]
    now = await (await begin_batch(connection)).rows()
    actions = [turn.action for turn in (*sent, *(t for t in turns if not t.subscriptions))]
    recorded = await append_actions(connection, actions, now=now, before=len(sent))
    fanned_out = [
        (turn.change(leaf_hash, now.recorded_at), sorted(turn.subscriptions))
        for turn, leaf_hash in zip(sent, recorded, strict=False)
    ]
    fanouts = [fanout_of(change, receivers) for change, receivers in fanned_out]
    leaf_hashes = await append_fanouts(connection, fanouts, now=now)
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=[*leaf_hashes, *recorded],
        writer=writer,
    )
    return await write_notifications(connection, fanned_out, epoch=now.epoch)


async def _rows(
    connection: Connection, name: str, parameters: dict[str, Any] | None = None
) -> list[Any]:
    return await (await connection.execute(_SQL[name], parameters)).fetchall()
