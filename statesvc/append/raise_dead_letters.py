"""Dead letters of messages that were applied nevertheless: unknown codes, and
members that are not events.
"""

from collections.abc import Iterable, Sequence

from events.clear_part import listed_code
from events.entry.proposal import Proposal
from events.errors import Cause
from statesvc.database.queries import Sender, columns, queries
from statesvc.reading.read_message import Read

_SQL = queries("statesvc.append", "raise_dead_letters")


async def raise_codes(connection: Sender, unknown: Sequence[Proposal], *, worker: str) -> None:
    """Open a dead letter for each unknown (carrier, type, code), unless it is open already.

    All texts of a carrier share a dead letter. A code that its text contradicts has one for
    each status that the texts state.
    """
    first: dict[tuple[str, str | None, str | None, str], Proposal] = {}
    for proposal in unknown:
        event = proposal.event
        raw, stated = event.raw, "" if event.contradicted is None else event.contradicted.value
        first.setdefault(
            (event.carrier_id, listed_code(raw.type), listed_code(raw.code), stated), proposal
        )
    if not first:
        return
    rows = [
        (
            carrier_id,
            p.source.message_id,
            p.source.received_at,
            raw_type,
            raw_code,
            (Cause.CONTRADICTS_TEXT if stated else Cause.UNKNOWN_CODE).value,
            stated,
            f"{p.source.normalizer}@{p.source.normalizer_version}",
        )
        for (carrier_id, raw_type, raw_code, stated), p in first.items()
    ]
    names = (
        "carrier_ids",
        "message_ids",
        "received_ats",
        "raw_types",
        "raw_codes",
        "causes",
        "details",
        "normalizers",
    )
    await connection.execute(_SQL["raise_codes"], {"worker": worker, **columns(rows, names)})


async def raise_rejections(connection: Sender, reads: Iterable[Read], *, worker: str) -> None:
    """Open a dead letter for each message with rejected members; it names positions, not values."""
    rows = [
        (
            read.carrier_id,
            read.message_id,
            read.source.received_at,
            "; ".join(
                f"{rejection.pointer or '/'}: {rejection.why}" for rejection in read.rejections[:20]
            ),
            f"{read.source.normalizer}@{read.source.normalizer_version}",
        )
        for read in reads
        if read.rejections
    ]
    if rows:
        names = ("carrier_ids", "message_ids", "received_ats", "details", "normalizers")
        await connection.execute(
            _SQL["raise_rejections"], {"worker": worker, **columns(rows, names)}
        )
