"""Notifications against the log: each is made, worded, deleted and ended as entries state.

A fan-out makes a notification and puts it into the outbox; a replay is another fan-out, which puts
it there again. It leaves with an entry of its own, with that of a later notification that covers
it, or with its subscription: the entry of a deletion covers all open notifications. Rows and
entries are summed like the dedupe keys, in two sums: contents, and open notifications. A part whose
sum is off is then compared row by row. Notifications of changes leave the tables with the fan-outs
that made them, and return with them. Repeated parts of an event are compared while the event is in
the tables. Tries at open notifications are not bound.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import Connection

from events.entry.kinds import EntryName
from events.identity.ids import webhook_id
from projections.notification_type import type_of_change
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.chain import PREFIX, WHOLE, Sums, bounds_of, in_portions, secret_hash
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.database.queries import queries
from statesvc.log import entry_documents
from statesvc.log.batch_row import LONGEST_TRANSACTION
from statesvc.log.entry_documents import AttemptDocument, FanoutDocument
from statesvc.log.entry_row import FIRST_VALUE
from statesvc.log.json_compression import decompress_json

SQL: Final = queries("statesvc.addons.verify", "notification_rows")
# Kinds of entries that concern notifications.
COUNTED_KINDS: Final = (EntryName.FANOUT, EntryName.ATTEMPT)
DELETE: Final = "subscription.delete"
_TARGET: Final = "subscription "
WORDS: Final = "notification "
OPEN: Final = "open "
_LATE: Final = "late"
_GRACE: Final = LONGEST_TRANSACTION.total_seconds() * 1_000_000


class Notified(NamedTuple):
    shipment_id: str
    sequence: int
    subscription_id: str

    def __str__(self) -> str:
        return (
            f"shipment_id={self.shipment_id} sequence={self.sequence}"
            f" subscription_id={self.subscription_id}"
        )


class Words(NamedTuple):
    """Values of a notification's row that its fan-out binds."""

    webhook_id: str
    type: str
    from_status: str
    to_status: str


# Times of deletions of subscriptions, by id: microseconds since 2000.
Deletions = Mapping[str, int]


def read_deletions(connection: Connection[Any]) -> dict[str, int]:
    """Read all deletions: their entries stay in the tables."""
    rows = connection.execute(SQL["deletions"], {"verb": DELETE})
    return {target.removeprefix(_TARGET): recorded_at for target, recorded_at in rows}


def take_rows(connection: Connection[Any], sums: Sums, secret: bytes, deletions: Deletions) -> None:
    """Subtract all notifications, and open ones, as the transaction sees them."""
    whole = bounds_of(WHOLE)
    for row in in_portions(connection, "notifications", SQL["notifications"], whole):
        _add(sums, secret, Notified(*row[:3]), -1, words=row[3:])
    for row in in_portions(connection, "open_notifications", SQL["open"], whole):
        # a deletion ends all that is open with one entry, which does not name them
        if row[2] not in deletions:
            _add(sums, secret, Notified(*row), -1)


def add_entries(
    sums: Sums,
    secret: bytes,
    kind: str,
    entries: Iterable[tuple[bytes, int]],
    deletions: Deletions,
    *,
    archived: bool,
) -> None:
    """Add notifications that fan-outs make, subtract ended ones; skip other kinds.

    `entries`: canonical bytes and time of record. `archived`: in a file and not in the tables.
    """
    if kind == EntryName.FANOUT:
        for canonical, recorded_at in entries:
            for one, words in _opened(canonical, archived=archived):
                if words is not None:
                    _add(sums, secret, one, 1, words=words)
                if not _is_covered(one, recorded_at, deletions):
                    _add(sums, secret, one, 1)
    elif kind == EntryName.ATTEMPT:
        for canonical, _ in entries:
            for one in _ended(canonical):
                if one.subscription_id not in deletions:
                    _add(sums, secret, one, -1)


def compare_notifications(
    connection: Connection[Any], part: str, archived: ArchivedMonths
) -> Iterator[LogFault]:
    """Yield the differences of a part, row by row, inside a transaction with one snapshot."""
    bounds, deletions = bounds_of(part), read_deletions(connection)
    made: dict[Notified, Words] = {}
    left: Counter[Notified] = Counter()
    for kind, canonical, recorded_at, is_archived in _entries(connection, part, archived):
        if kind == EntryName.FANOUT:
            opened = list(_opened(canonical, archived=is_archived))
            made |= {one: words for one, words in opened if words is not None}
            left.update(one for one, _ in opened if not _is_covered(one, recorded_at, deletions))
        else:
            left.subtract(one for one in _ended(canonical) if one.subscription_id not in deletions)
    rows = {
        Notified(*row[:3]): Words(*row[3:])
        for row in connection.execute(SQL["notifications"], bounds, binary=True)
    }
    yield from _compare_rows(rows, made)
    left.subtract(
        Notified(*row)
        for row in connection.execute(SQL["open"], bounds, binary=True)
        if row[2] not in deletions
    )
    for one, rest in left.items():
        if rest > 0:
            yield _fault(
                "outbox",
                one,
                "is missing, though no entry of the log says how the notification ended: it was"
                " deleted",
            )
        elif rest < 0:
            yield _fault(
                "outbox",
                one,
                "waits, or ended, more often than fan-outs of the log say: it was inserted",
            )


def _compare_rows(
    rows: Mapping[Notified, Words], made: Mapping[Notified, Words]
) -> Iterator[LogFault]:
    for one in made.keys() - rows.keys():
        yield _fault(
            "notification", one, "is missing, though a fan-out of the log made it: it was deleted"
        )
    for one in rows.keys() - made.keys():
        yield _fault("notification", one, "no fan-out of the log made it: it was inserted")
    for one in made.keys() & rows.keys():
        for name, found, wanted in zip(Words._fields, rows[one], made[one], strict=True):
            if found != wanted:
                yield LogFault(
                    "notification", str(one), name, f"was changed: its fan-out says {wanted}"
                )


def _fault(table: str, one: Notified, why: str) -> LogFault:
    return LogFault(table, str(one), "sequence", why)


def reworded(connection: Connection[Any]) -> Iterator[LogFault]:
    """Yield notifications that contradict their event, as far as it is in the tables."""
    for *key, carrier_id, tracking_number, occurred_at, offset, created_at in connection.execute(
        SQL["reworded"], {"most": FAULTS_MAX}
    ):
        flags = zip(
            (
                "carrier_id",
                "tracking_number",
                "occurred_at",
                "occurred_offset_seconds",
                "created_at",
            ),
            (carrier_id, tracking_number, occurred_at, offset, created_at),
            strict=True,
        )
        names = ", ".join(name for name, differs in flags if differs)
        yield LogFault(
            "notification", str(Notified(*key)), names, "is not what the event that it names says"
        )


def _entries(
    connection: Connection[Any], part: str, archived: ArchivedMonths
) -> Iterator[tuple[str, bytes, int, bool]]:
    """Yield fan-outs and ends of the shipments of a part, each once, and whether it
    is in the archive alone.
    """
    seen: set[bytes] = set()
    for kind, stored, recorded_at in connection.execute(
        SQL["entries"], bounds_of(part), binary=True
    ):
        try:
            canonical = decompress_json(stored)
        except ValueError:
            # the entry's own check says what is wrong with it
            continue
        seen.add(canonical)
        yield kind, canonical, recorded_at, False
    for entry in archived.entries_of(part, COUNTED_KINDS):
        # a shipment that was brought back has its entries in the tables and in the file
        if entry.canonical not in seen:
            yield (
                entry.kind.name,
                entry.canonical,
                entry.counted[FIRST_VALUE + entry.kind.recorded],
                True,
            )


def _opened(canonical: bytes, *, archived: bool) -> Iterator[tuple[Notified, Words | None]]:
    """Yield the notifications of a fan-out; with the words of those that it made and that have a
    row.
    """
    try:
        document: FanoutDocument = entry_documents.fanout(canonical)
        event = bytes.fromhex(document.event)
        ids = [webhook_id(UUID(each), event) for each in document.subscriptions]
    except ValueError:
        # the entry's own check says what is wrong with it
        return
    kind = document.kind or type_of_change(document.from_status, document.to_status)
    # what observations made stays
    made = not document.replayed and (document.sequence < 0 or not archived)
    for each, its_id in zip(document.subscriptions, ids, strict=True):
        words = Words(its_id, kind, document.from_status, document.to_status) if made else None
        yield Notified(document.shipment_id, document.sequence, each), words


def _ended(canonical: bytes) -> Iterator[Notified]:
    try:
        document: AttemptDocument = entry_documents.attempt(canonical)
    except ValueError:
        return
    if document.outcome != _LATE:
        for sequence in (document.sequence, *(each.sequence for each in document.covers)):
            yield Notified(document.shipment_id, sequence, document.subscription_id)


def _is_covered(one: Notified, recorded_at: int, deletions: Deletions) -> bool:
    """Return whether its subscription was deleted after it was fanned out, or while it was."""
    deleted_at = deletions.get(one.subscription_id)
    return deleted_at is not None and recorded_at <= deleted_at + _GRACE


def _add(
    sums: Sums, secret: bytes, one: Notified, sign: int, *, words: Iterable[str] | None = None
) -> None:
    name = OPEN if words is None else WORDS
    content = "\x1f".join(
        (name, one.shipment_id, str(one.sequence), one.subscription_id, *(words or ()))
    ).encode()
    part = one.shipment_id[:PREFIX]
    sums[name + part] += sign * secret_hash(secret, content)
