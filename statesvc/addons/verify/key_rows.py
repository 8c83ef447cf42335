"""Dedupe keys and counters of conflicts against the log.

A dedupe key for every event, an event for every key and alias. Rows and events are as many as the
log is long, so they are summed like the chains: each row adds a keyed hash of itself, each event
subtracts that of the row it should have, and zero must remain. The key is made for each run, so
rows cannot be chosen to cancel out. A part whose sum is off is then compared row by row. A row of a
derived id counts by the digest that replaces it once its shipment is archived (`packed_keys`), so
its place makes no difference. A duplicate may have brought an alias that its event's entry does not
show, so an extra alias is accepted if it belongs to an event; an alias that follows from the entry
must exist. The scan's `attribute_digests` are not compared.

A counter for every logged conflict, and vice versa, summed likewise. The number of repetitions is
counted outside the log and is not verified.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from psycopg import Connection, Cursor

from events.entry.kinds import EntryName
from events.entry.packed_keys import chunks, packed_key
from events.entry.proposal import DedupeKey
from statesvc.addons.verify.archived_months import ArchivedMonths
from statesvc.addons.verify.chain import PREFIX, WHOLE, Sums, bounds_of, in_portions, secret_hash
from statesvc.addons.verify.event_ids import Digests, EventIds, event_ids
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.database.queries import queries
from statesvc.log import entry_documents
from statesvc.log.entry_row import FIRST_VALUE
from statesvc.log.json_compression import decompress_json

SQL: Final = queries("statesvc.addons.verify", "key_rows")
ROWS: Final = "key "
# Before the part of a sum: facts have their own, because not every verifier can compute them.
FACTS: Final = "facts "


def add_rows(connection: Connection[Any], sums: Sums, secret: bytes) -> None:
    """Add all rows that are no aliases, and packed keys, as the transaction sees them."""
    whole = bounds_of(WHOLE)
    for carrier_id, event_id, shipment_id, facts in in_portions(
        connection, "dedupe_keys", SQL["keys"], whole
    ):
        name = _row_name(carrier_id, event_id, shipment_id, is_native=facts != b"")
        _add_key(sums, secret, shipment_id, name, facts, sign=1)
    for shipment_id, carrier_id, packed in in_portions(
        connection, "packed_keys", SQL["packed"], whole
    ):
        for digest in chunks(packed):
            _add_key(
                sums,
                secret,
                shipment_id,
                _packed_name(carrier_id, digest, shipment_id),
                b"",
                sign=1,
            )


def take_events(sums: Sums, secret: bytes, events: Iterable[EventIds]) -> None:
    """Subtract the rows that events should have."""
    for carrier_id, event_id, shipment_id, facts, *_ in events:
        name = _row_name(carrier_id, event_id, shipment_id, is_native=facts != b"")
        _add_key(sums, secret, shipment_id, name, facts, sign=-1)


def _add_key(
    sums: Sums, secret: bytes, shipment_id: str, name: bytes, facts: bytes | None, *, sign: int
) -> None:
    part = shipment_id[:PREFIX]
    # apart from the facts: a verifier without the digest key still compares the rows
    sums[ROWS + part] += sign * secret_hash(secret, name)
    if facts:
        sums[FACTS + part] += sign * secret_hash(secret, name + facts)


def compare_keys(
    connection: Connection[Any], part: str, archived: ArchivedMonths, digests: Digests | None
) -> Iterator[LogFault]:
    """Yield the differences of a part, row by row, inside a transaction with one snapshot."""
    bounds = bounds_of(part)
    rows = {row[:2]: row[2:] for row in connection.execute(SQL["keys"], bounds, binary=True)}
    stored = {
        (row[0], row[1]): row[2] for row in connection.execute(SQL["events"], bounds, binary=True)
    }
    if archived.months:
        stored |= {event[:2]: event[3] for event in archived.events_of(part)}
    packed = {
        (shipment, digest)
        for shipment, _, keys in connection.execute(SQL["packed"], bounds, binary=True)
        for digest in chunks(keys)
    }
    found: set[tuple[str, bytes]] = set()
    wanted: set[DedupeKey] = set()
    for shipment_version, content in stored.items():
        try:
            ids = event_ids(entry_documents.event(decompress_json(content).decode()), digests)
        except ValueError:
            # the entry's own check says what is wrong with it
            continue
        key = (ids.carrier_id, ids.event_id)
        if key in wanted:
            row_name = "shipment_id={} version={}".format(*shipment_version)
            yield LogFault("event", row_name, "event_id", "another event of the log has it too")
        wanted.add(key)
        own = (ids.shipment_id, packed_key(ids.event_id))
        # only ids of ours are packed: a carrier's own id takes its facts with it
        if key not in rows and ids.facts == b"" and own in packed:
            found.add(own)
        else:
            yield from _row_faults(connection, ids, rows.get(key))
    # a packed key without its event would make a later scan a duplicate of nothing
    for shipment, digest in packed - found:
        yield LogFault(
            "stream",
            f"shipment_id={shipment}",
            "packed_keys",
            f"{digest.hex()} stands for no archived event of this shipment",
        )
    for key in rows.keys() - wanted:
        yield _fault(
            key,
            "event_id",
            f"shipment {rows[key][0]} has no such event: the row was inserted, or points at another"
            " shipment",
        )


def _row_faults(
    connection: Connection[Any], ids: EventIds, row: tuple[Any, ...] | None
) -> Iterator[LogFault]:
    key = (ids.carrier_id, ids.event_id)
    if row is None:
        yield _absent(connection, ids)
    elif row[0] != ids.shipment_id:
        yield _fault(key, "shipment_id", f"the event of this id is of {ids.shipment_id}")
    elif ids.facts is not None and row[1] != ids.facts:
        yield _fault(key, "facts_digest", "is not that of what the event states")


def unexpected_aliases(connection: Connection[Any]) -> Iterator[LogFault]:
    """Yield aliases without an event, or in contradiction to the event's own row."""
    for carrier_id, event_id, alias_of, exists in connection.execute(
        SQL["unexpected_aliases"], {"most": FAULTS_MAX}
    ):
        if exists:
            yield _fault(
                (carrier_id, event_id),
                "shipment_id, facts_digest, attribute_digests",
                f"is not what the row of {alias_of} says",
            )
        else:
            yield _fault(
                (carrier_id, event_id),
                "alias_of",
                f"there is no row of {alias_of}, or it is an alias itself",
            )


def missing_aliases(cursor: Cursor[Any], aliases: Iterable[DedupeKey]) -> Iterator[LogFault]:
    """Yield those without a row, in the transaction that read their events."""
    wanted = list(aliases)
    if not wanted:
        return
    carrier_ids, event_ids_ = map(list, zip(*wanted, strict=True))
    for key in cursor.execute(
        SQL["missing_aliases"], {"carrier_ids": carrier_ids, "event_ids": event_ids_}
    ):
        yield _fault(
            key,
            "event_id",
            "the row is missing, though an event of the log has this alias: it was deleted",
        )


def _absent(connection: Connection[Any], ids: EventIds) -> LogFault:
    key = (ids.carrier_id, ids.event_id)
    found = connection.execute(SQL["key"], {"carrier_id": key[0], "event_id": key[1]}).fetchone()
    if found is None:
        return _fault(
            key,
            "event_id",
            f"the row is missing, though the log has the event in shipment {ids.shipment_id}: it"
            " was deleted",
        )
    shipment_id, alias_of = found
    if alias_of is not None:
        return _fault(
            key,
            "alias_of",
            f"says that it is an alias of {alias_of}, but the log has the event itself",
        )
    return _fault(
        key, "shipment_id", f"says {shipment_id}, but the event is in shipment {ids.shipment_id}"
    )


def _fault(key: DedupeKey, field: str, why: str) -> LogFault:
    return LogFault("event_key", f"carrier_id={key[0]} event_id={key[1]}", field, why)


def _row_name(carrier_id: str, event_id: str, shipment_id: str, *, is_native: bool) -> bytes:
    """Encode a row of the table, or of the packed set of its shipment."""
    if is_native:
        return f"n{event_id}\x1f{carrier_id}\x1f{shipment_id}".encode()
    return _packed_name(carrier_id, packed_key(event_id), shipment_id)


def _packed_name(carrier_id: str, digest: bytes, shipment_id: str) -> bytes:
    return b"d" + digest + f"{carrier_id}\x1f{shipment_id}".encode()


COUNTERS: Final = "conflict "


class Counted(NamedTuple):
    """Fields that an entry and its counter have in common.

    `recorded_at` in microseconds since 2000.
    """

    shipment_id: str
    claimed_shipment_id: str
    recorded_at: int
    carrier_id: str
    event_id: str
    facts_digest: str


def add_counters(connection: Connection[Any], sums: Sums, secret: bytes) -> None:
    for row in in_portions(connection, "conflict_counters", SQL["counters"], bounds_of(WHOLE)):
        _add(sums, secret, Counted(*row), 1)


def take_conflicts(sums: Sums, secret: bytes, rows: Iterable[Any]) -> None:
    """Subtract the counters that these entries should have."""
    for row in rows:
        _add(sums, secret, _of_entry(row), -1)


def compare_counters(
    connection: Connection[Any], part: str, archived: ArchivedMonths
) -> Iterator[LogFault]:
    """Yield the differences of a part, row by row, inside a transaction with one snapshot."""
    bounds = bounds_of(part)
    counters = {Counted(*row) for row in connection.execute(SQL["counters"], bounds, binary=True)}
    conflicts = {Counted(*row) for row in connection.execute(SQL["conflicts"], bounds, binary=True)}
    conflicts |= {
        _of_entry(entry.counted) for entry in archived.entries_of(part, (EntryName.CONFLICT,))
    }
    for counted in sorted(conflicts - counters):
        yield _counter_fault(
            counted,
            "is missing or differs, though the log has the conflict: it was deleted or changed",
        )
    for counted in sorted(counters - conflicts):
        yield _counter_fault(
            counted, "the log has no such conflict: the row was inserted or changed"
        )


def _of_entry(row: Any) -> Counted:  # noqa: ANN401 - a row
    # all but the message, which the counter does not name
    return Counted(*row[FIRST_VALUE : FIRST_VALUE + 3], *row[FIRST_VALUE + 4 :])


def _add(sums: Sums, secret: bytes, counted: Counted, sign: int) -> None:
    name = COUNTERS + "\x1f".join(map(str, counted))
    sums[COUNTERS + counted.shipment_id[:PREFIX]] += sign * secret_hash(secret, name.encode())


def _counter_fault(counted: Counted, why: str) -> LogFault:
    return LogFault(
        "conflict_key",
        f"carrier_id={counted.carrier_id} event_id={counted.event_id}",
        "facts_digest",
        why,
    )
