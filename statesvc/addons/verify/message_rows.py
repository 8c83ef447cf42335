"""Events against the rows of their messages: the verdict, and the body of the event's commitment.

Archived days of bodies, and months of verdicts with expired bodies, have left the database and are
skipped.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import Connection

from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.database.queries import queries

SQL: Final = queries("statesvc.addons.verify", "message_rows")
UNREADABLE: Final = "messages and bodies of events: this role may not read them"


class CommittedMessage(NamedTuple):
    """Statement of an event about its message. `received_at` in microseconds since 2000."""

    received_at: int
    canonical: bytes


class _Commitment(msgspec.Struct, gc=False):
    body_commitment: str


_COMMITMENT: Final = msgspec.json.Decoder(_Commitment)


def may_read_messages(connection: Connection[Any]) -> bool:
    """Return whether the role may read messages: an auditor may not."""
    row = connection.execute(SQL["may_read"]).fetchone()
    return row is not None and bool(row[0])


def compare_messages(
    connection: Connection[Any], messages: Mapping[str, CommittedMessage]
) -> Iterator[LogFault]:
    """Yield missing and different rows.

    Not in the transaction that read the events: rows that leave meanwhile must be seen to have
    left.
    """
    if not messages:
        return
    times = [message.received_at for message in messages.values()]
    parameters = {"message_ids": list(messages), "since": min(times), "until": max(times)}
    settled = {
        message_id for (message_id,) in connection.execute(SQL["messages"], parameters, binary=True)
    }
    bodies = dict(connection.execute(SQL["bodies"], parameters, binary=True).fetchall())
    for message_id, commitment in bodies.items():
        if commitment.hex() != _committed(messages[message_id].canonical):
            yield LogFault(
                "body",
                f"message_id={message_id}",
                "commitment",
                "is not the one that its events bind",
            )
    missing = [
        message_id
        for message_id in messages
        if message_id not in settled or message_id not in bodies
    ]
    # the ledgers of what has left are asked for the missing alone
    if not missing:
        return
    asked = {
        "message_ids": missing,
        "received_ats": [messages[message_id].received_at for message_id in missing],
    }
    for message_id, message_left, body_left in connection.execute(SQL["left"], asked).fetchall():
        if message_id not in settled and not message_left:
            yield LogFault(
                "message",
                f"message_id={message_id}",
                "message_id",
                "is missing, though an event names it: it was deleted",
            )
        if message_id not in bodies and not body_left:
            yield LogFault(
                "body",
                f"message_id={message_id}",
                "message_id",
                "is missing, though its day is not archived: it was deleted",
            )


def _committed(canonical: bytes) -> str | None:
    try:
        return _COMMITMENT.decode(canonical).body_commitment
    except (msgspec.DecodeError, ValueError):
        # the entry's own check says what is wrong with it
        return None


def renamed_streams(connection: Connection[Any]) -> Iterator[LogFault]:
    """Yield shipments that another number, carrier or discriminator was written to: their id
    is made of these three.
    """
    for (shipment_id,) in connection.execute(SQL["renamed_streams"], {"most": FAULTS_MAX}):
        yield LogFault(
            "stream",
            f"shipment_id={shipment_id}",
            "carrier_id, number, discriminator",
            "are not what the shipment's id is made of",
        )
