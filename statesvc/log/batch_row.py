"""The batch row: every transaction that writes entries writes exactly one, with their leaf hashes
in the order of the batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from events.entry.kinds import FIRST_EPOCH
from statesvc.database.queries import Pending, Sender, queries, send

_SQL = queries("statesvc.log", "event_store")
# No transaction that writes entries may last this long: a worker's ends within its lease, half of
# this.
LONGEST_TRANSACTION: Final = timedelta(minutes=1)


def recorded_too_early(batches: Iterable[tuple[datetime, datetime]]) -> Iterator[int]:
    """Yield the positions of batches that say an earlier time than is possible: later batches
    were sealed before them.

    `batches`: the first and the last time of each, in the order of the log. A sealer that was away
    seals late, but in order, so that names none. These were back-dated, or a clock was wrong.
    """
    latest: datetime | None = None
    for place, (recorded_from, recorded_to) in enumerate(batches):
        if latest is not None and recorded_to < latest - LONGEST_TRANSACTION:
            yield place
        latest = recorded_from if latest is None else max(latest, recorded_from)


class BatchStamp(NamedTuple):
    """Clock, batch id and epoch that a writing transaction reads under its locks.

    The epoch holds until the transaction ends: a fork of the log waits for those that have read
    the old one.
    """

    recorded_at: datetime
    batch_id: int
    epoch: int
    expectations: str | None = None
    """The rules of expectations, as JSON; None: only the defaults."""


NO_STAMP: Final = BatchStamp(datetime.min.replace(tzinfo=UTC), 0, FIRST_EPOCH)


async def begin_batch(connection: Sender) -> Pending[BatchStamp]:
    """Read the stamp of this transaction's batch, under the locks taken before."""
    return await send(
        connection,
        _SQL["begin_batch"],
        {},
        lambda rows: BatchStamp(rows[0][0].astimezone(UTC), *rows[0][1:]),
    )


async def write_batch(
    connection: Sender,
    *,
    batch_id: int,
    recorded_at: datetime,
    recorded_to: datetime | None = None,
    leaf_hashes: Sequence[bytes],
    writer: str,
) -> None:
    """Write the row.

    `recorded_at`: of its earliest entry; `recorded_to`: of its latest, None if all have the same.

    `writer` names the process.
    """
    await connection.execute(
        _SQL["insert_batch"],
        {
            "batch_id": batch_id,
            "recorded_from": recorded_at,
            "recorded_to": recorded_to or recorded_at,
            "entries": len(leaf_hashes),
            "leaf_hashes": b"".join(leaf_hashes),
            "writer": writer,
        },
    )
