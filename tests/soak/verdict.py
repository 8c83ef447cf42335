"""The reckoning: the ledger and the subscriber on one side, the database on the other.

Every promise by itself, with what broke it.
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from psycopg import AsyncConnection, IsolationLevel

from events.crypto.keyring import Keyring
from tests.events.merkle.naive import mth
from tests.soak.ledger import Promises
from tests.soak.subscriber import Subscriber
from tests.statesvc.worker.log_check import check_log

_SEALED_SECONDS = 60
ENRICHMENT = "e1-"
"""Event ids of facts that came beside a scan: how many there are depends on the order of
arrival.
"""


@dataclass(slots=True)
class Verdict:
    """`broken` is empty when all promises were kept."""

    broken: list[str] = field(default_factory=list)
    messages: int = 0
    dead_letters: int = 0
    events: int = 0
    entries: int = 0
    notifications: int = 0
    noticed: int = 0
    """Those of what did not happen."""
    deliveries: int = 0
    lag_seconds_max: float = 0.0

    def must(self, what: str, wrong: Any) -> None:
        """Record violations. `wrong`: a collection or count of them."""
        if wrong:
            pieces = wrong.items() if isinstance(wrong, dict) else wrong
            shown = sorted(map(str, pieces))[:5] if isinstance(wrong, set | list | dict) else wrong
            size = len(wrong) if isinstance(wrong, set | list | dict) else wrong
            self.broken.append(f"{what}: {size} ({shown})")


async def judge(
    dsn: str, keyring: Keyring, promised: Promises, subscriber: Subscriber | None
) -> Verdict:
    """Judge everything, as it was when all was sealed.

    A notifier that was cut off still adds the tries that it made to the log when their
    notifications have long ended by another's.
    """
    verdict = Verdict()
    async with await AsyncConnection.connect(dsn) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        async with asyncio.timeout(_SEALED_SECONDS):
            while True:
                # before the snapshot, because the service goes on noticing what time brings: a day
                # ends somewhere, a delivery was missed
                received = [] if subscriber is None else list(subscriber.received)
                if not await _rows(connection, "SELECT FROM statesvc.unsealed LIMIT 1"):
                    break
                await connection.rollback()
        await _judge_messages(verdict, connection, promised)
        await _judge_events(verdict, connection, promised)
        await _judge_log(verdict, connection, keyring)
        if subscriber is not None:
            await _judge_notifications(verdict, connection, subscriber, received)
    return verdict


async def _rows(connection: AsyncConnection[Any], query: str) -> list[Any]:
    return await (await connection.execute(query.encode())).fetchall()


async def _judge_messages(
    verdict: Verdict, connection: AsyncConnection[Any], promised: Promises
) -> None:
    settled = Counter(
        str(row[0]) for row in await _rows(connection, "SELECT message_id FROM statesvc.message")
    )
    buried = Counter(
        str(row[0])
        for row in await _rows(
            connection,
            "SELECT message_id FROM statesvc.dead_letter WHERE kind = 'message' AND cause <>"
            " 'rejected_member' AND resolved_at IS NULL",
        )
    )
    # a body that was pushed again before the spool was drained has an id of its own, which resolves
    kept = {
        str(alias): str(message_id)
        for alias, message_id in await _rows(
            connection, "SELECT message_id, kept_id FROM statesvc.message_alias"
        )
    }
    acknowledged = {kept.get(name, name) for name in promised.readable | promised.unreadable}
    verdict.messages, verdict.dead_letters = len(settled), len(buried)
    verdict.must(
        "bodies acknowledged as several messages",
        {
            body
            for body, ids in promised.messages.items()
            if len({kept.get(name, name) for name in ids}) > 1
        },
    )
    verdict.must(
        "acknowledged messages that are lost", acknowledged - settled.keys() - buried.keys()
    )
    verdict.must(
        "messages that are settled and dead, or twice",
        {name for name, count in (settled + buried).items() if count > 1},
    )
    verdict.must("readable messages that were given up", promised.readable & buried.keys())
    verdict.must("unreadable messages that were settled", promised.unreadable & settled.keys())
    verdict.must(
        "messages that nobody was told of", (settled.keys() | buried.keys()) - acknowledged
    )
    lag = await _rows(
        connection,
        "SELECT max(settled_at - received_at), count(*) FILTER (WHERE settled_at < received_at)"
        " FROM statesvc.message",
    )
    verdict.lag_seconds_max = lag[0][0].total_seconds() if lag[0][0] is not None else 0.0
    verdict.must("messages settled before they came", lag[0][1])


async def _judge_events(
    verdict: Verdict, connection: AsyncConnection[Any], promised: Promises
) -> None:
    logged = Counter(
        (carrier, event)
        for carrier, event in await _rows(
            connection, "SELECT carrier_id, event_id FROM statesvc.event"
        )
    )
    verdict.events = logged.total()
    verdict.must("events that are lost", promised.events - logged.keys())
    verdict.must("events applied twice", {key for key, count in logged.items() if count > 1})
    verdict.must(
        "events that nobody told",
        {key for key in logged.keys() - promised.events if not key[1].startswith(ENRICHMENT)},
    )
    gaps = (
        "SELECT shipment_id FROM statesvc.event GROUP BY 1 HAVING min(version) <> 1 OR max(version)"
        " <> count(*)"
    )
    verdict.must("shipments with gaps in their versions", await _rows(connection, gaps))
    behind = """
        SELECT e.shipment_id FROM (SELECT shipment_id, max(version) AS version FROM statesvc.event GROUP BY 1) e
        LEFT JOIN statesvc.shipment s USING (shipment_id) WHERE s.version IS DISTINCT FROM e.version"""
    verdict.must("shipments behind their events", await _rows(connection, behind))
    untold = """
        SELECT t.shipment_id, t.sequence FROM statesvc.transition t CROSS JOIN statesvc.subscription u
        LEFT JOIN statesvc.notification n
            ON n.shipment_id = t.shipment_id AND n.sequence = t.sequence AND n.subscription_id = u.subscription_id
        WHERE n.webhook_id IS NULL"""
    verdict.must("transitions without a notification", await _rows(connection, untold))


async def _judge_log(verdict: Verdict, connection: AsyncConnection[Any], keyring: Keyring) -> None:
    try:
        verdict.entries = await check_log(connection, keyring)
    except AssertionError:
        verdict.must("the log does not hold", traceback.format_exc()[-600:])
    sealed = await _rows(
        connection,
        "SELECT s.first_index, s.entries, b.leaf_hashes FROM statesvc.sealed_batch s JOIN"
        " statesvc.batch b USING (batch_id) ORDER BY 1",
    )
    leaves = b"".join(leaf_hashes for _, _, leaf_hashes in sealed)
    places = accumulate((entries for _, entries, _ in sealed), initial=0)
    verdict.must(
        "sealed batches in a wrong place",
        [first for (first, _, _), place in zip(sealed, places, strict=False) if first != place],
    )
    verdict.must("entries that are not sealed, or twice", verdict.entries - len(leaves) // 32)
    newest = await _rows(
        connection,
        "SELECT tree_size, root FROM statesvc.checkpoint ORDER BY tree_size DESC LIMIT 1",
    )
    expected = mth([leaves[at : at + 32] for at in range(0, len(leaves), 32)])
    verdict.must(
        "the newest checkpoint is not the root of the log",
        newest != [(len(leaves) // 32, expected)],
    )


async def _judge_notifications(
    verdict: Verdict,
    connection: AsyncConnection[Any],
    subscriber: Subscriber,
    received: Sequence[str],
) -> None:
    due = {
        webhook_id: (shipment, sequence)
        for webhook_id, shipment, sequence in await _rows(
            connection, "SELECT webhook_id, shipment_id, sequence FROM statesvc.notification"
        )
    }
    verdict.notifications, verdict.deliveries = len(due), len(received)
    verdict.noticed = sum(sequence < 0 for _, sequence in due.values())
    # what was noticed just before the snapshot may still be on its way
    caused = {webhook_id for webhook_id, (_, sequence) in due.items() if sequence > 0}
    verdict.must("notifications that never came", caused - subscriber.said.keys())
    verdict.must(
        "notifications that nobody wrote",
        {name: subscriber.said[name] for name in received if name not in due},
    )
    verdict.must(
        "changes told under two ids",
        {key for key, count in Counter(due.values()).items() if count > 1},
    )
    verdict.must(
        "deliveries with a wrong signature, or another text under the same id", subscriber.forged
    )
    verdict.must(
        "undelivered notifications given up",
        await _rows(connection, "SELECT 1 FROM statesvc.dead_letter WHERE kind = 'notification'"),
    )
    last: dict[Any, int] = {}
    disordered = []
    for webhook_id in dict.fromkeys(received):
        shipment, sequence = due.get(webhook_id, (None, 0))
        # what did not happen is counted from -1,000,000, in an order of its own
        order = shipment, sequence < 0
        if sequence < last.get(order, sequence):
            disordered.append((shipment, sequence))
        last[order] = max(last.get(order, sequence), sequence)
    verdict.must("shipments whose notifications came out of order", disordered)
