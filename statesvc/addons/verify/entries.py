"""Checks of a range of batches: bytes against hashes, columns, batches, sealed parts, the queue."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Final

from psycopg import Connection, Cursor
from psycopg.types.numeric import Int8BinaryLoader

from events.crypto.sealing import MasterKeys
from events.entry.kinds import EntryName
from events.entry.proposal import DedupeKey
from statesvc.addons.verify.archived_months import ArchivedMonths, FileEntries, UnreadBatches
from statesvc.addons.verify.batches import BatchPositions, BatchRange, read_batches, untaken
from statesvc.addons.verify.chain import Link, Sums, add_events, link_of
from statesvc.addons.verify.event_ids import Digests, EventIds, conflict_fault, event_ids
from statesvc.addons.verify.fault import FAULTS_MAX, LogFault
from statesvc.addons.verify.key_rows import missing_aliases, take_conflicts, take_events
from statesvc.addons.verify.message_rows import UNREADABLE, CommittedMessage, compare_messages
from statesvc.addons.verify.notification_rows import COUNTED_KINDS, add_entries
from statesvc.addons.verify.parts import Parts
from statesvc.database.queries import queries
from statesvc.log.actions import ERASE, SHIPMENT
from statesvc.log.entry_kinds import ENTRY_KINDS, KINDS_BY_NAME, EntryKind
from statesvc.log.entry_row import FIRST_VALUE, LogEntry, entry_statements
from statesvc.log.json_compression import decompress_json

SQL = queries("statesvc.addons.verify", "entries")
_ENTRIES: Final = entry_statements(SQL["entries"])
_BATCH: Final = itemgetter(0)
_ORDINAL: Final = itemgetter(1)
_CANONICAL: Final = 2
_EVENT_COLUMNS: Final = KINDS_BY_NAME[EntryName.EVENT].columns
_MESSAGE_ID: Final = FIRST_VALUE + _EVENT_COLUMNS.index("message_id")
_RECEIVED_AT: Final = FIRST_VALUE + _EVENT_COLUMNS.index("received_at")


@dataclass(slots=True)
class CheckedBatches:
    entries: int = 0
    events: int = 0
    batches: int = 0
    sums: Sums = field(default_factory=Sums)
    faults: list[LogFault] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    unchecked: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, kw_only=True)
class RangeChecks:
    """Dependencies and results of a range.

    `digests` None: checks with the digest key are skipped.
    """

    connection: Connection[Any]
    batches: dict[int, BatchPositions]
    parts: Parts
    digests: Digests | None
    secret: bytes
    deletions: Mapping[str, int]
    checked: CheckedBatches = field(default_factory=CheckedBatches)
    aliases: set[DedupeKey] = field(default_factory=set)

    def check(
        self, kind: EntryKind, rows: Sequence[Any], *, archived: bool = False
    ) -> Iterator[LogFault]:
        """Yield the faults of rows of one kind, of any batches."""
        if self.parts.opens and kind.sealed and rows:
            named = (value for row in rows for value in row[FIRST_VALUE : FIRST_VALUE + 2])
            self.parts.read(self.connection, {value for value in named if isinstance(value, str)})
        for batch_id, entries in groupby(rows, key=_BATCH):
            # in their order, as the positions of versions need it
            together = sorted(entries, key=_ORDINAL)
            yield from check_entries(
                kind, together, self.batches.get(batch_id), self, archived=archived
            )

    def count(self, kind: EntryKind, rows: Sequence[Any], *, archived: bool = False) -> None:
        """Count entries, and the rows that they say other tables have."""
        self.checked.entries += len(rows)
        if kind.name == EntryName.EVENT:
            self.checked.events += len(rows)
        elif kind.name == EntryName.ACTION:
            for row in rows:
                verb, target = row[FIRST_VALUE + 1 : FIRST_VALUE + 3]
                if verb == ERASE:
                    self.checked.erased.add(target.removeprefix(SHIPMENT))
        # the sums hold rows as of the snapshot: entries of a later batch would not come out
        summed = (
            row for row in rows if (batch := self.batches.get(row[0])) is not None and batch.summed
        )
        if kind.name == EntryName.CONFLICT:
            take_conflicts(self.checked.sums, self.secret, summed)
        elif kind.name in COUNTED_KINDS:
            add_entries(
                self.checked.sums,
                self.secret,
                kind.name,
                ((row[_CANONICAL], row[FIRST_VALUE + kind.recorded]) for row in summed),
                self.deletions,
                archived=archived,
            )

    def take(
        self, events: Sequence[EventIds], links: Iterable[Link], batch: BatchPositions
    ) -> None:
        """Count the events of a batch."""
        for ids in events:
            # most carriers have a single recipe, so no aliases
            if ids.aliases:
                self.aliases.update((ids.carrier_id, alias) for alias in ids.aliases)
            if ids.unchecked:
                self.checked.unchecked.update(ids.unchecked)
        if batch.summed:
            add_events(self.checked.sums, links)
            take_events(self.checked.sums, self.secret, events)


def check_batches(
    connection: Connection[Any],
    batch_range: BatchRange,
    master: MasterKeys | None,
    archived: ArchivedMonths,
    digests: Digests | None = None,
    *,
    reads_messages: bool = True,
) -> CheckedBatches:
    found: list[LogFault] = []
    messages: dict[str, CommittedMessage] = {}
    with connection.transaction(), _cursor(connection) as cursor:
        cursor.execute(SQL["snapshot"])
        batches = read_batches(cursor, batch_range, found)
        checks = RangeChecks(
            connection=connection,
            batches=batches,
            parts=Parts(master),
            digests=digests,
            secret=batch_range.secret,
            deletions=batch_range.deletions,
        )
        for kind in ENTRY_KINDS:
            bounds = {"low": batch_range.low, "high": batch_range.high, "opens": checks.parts.opens}
            rows = [_decompressed(row) for row in cursor.execute(_ENTRIES[kind.name], bounds)]
            found += islice(checks.check(kind, rows), FAULTS_MAX)
            checks.count(kind, rows)
            if kind.name == EntryName.EVENT:
                messages = {
                    row[_MESSAGE_ID]: CommittedMessage(row[_RECEIVED_AT], row[_CANONICAL])
                    for row in rows
                }
        unread: list[UnreadBatches] = []
        for file in archived.of_batches(batch_range.low, batch_range.high):
            found += file.faults
            unread += file.unread
            found += islice(_check_archived(file, checks), FAULTS_MAX)
        found += islice(missing_aliases(cursor, checks.aliases), FAULTS_MAX)
    checked = checks.checked
    if reads_messages:
        found += islice(compare_messages(connection, messages), FAULTS_MAX)
    elif messages:
        checked.unchecked[UNREADABLE] += len(messages)
    checked.batches = len(batches)
    # what could not be read was said already
    found += islice(
        untaken(
            {
                id_: batch
                for id_, batch in batches.items()
                if not any(id_ in each for each in unread)
            }
        ),
        FAULTS_MAX,
    )
    checked.faults = found[:FAULTS_MAX]
    return checked


def _cursor(connection: Connection[Any]) -> Cursor[Any]:
    """Open a cursor.

    Times come as the integers that they are in the server: three of them an event are
    too many objects to make.
    """
    cursor = connection.cursor(binary=True)
    # of this cursor only: elsewhere times are datetimes
    cursor.adapters.register_loader("timestamptz", Int8BinaryLoader)
    return cursor


def _decompressed(row: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a row
    """Return the row with its canonical bytes; undecodable bytes stay as they are."""
    batch_id, ordinal, stored, *rest = row
    try:
        return (batch_id, ordinal, decompress_json(stored), *rest)
    except ValueError:
        return (batch_id, ordinal, stored, *rest)


def _check_archived(file: FileEntries, checks: RangeChecks) -> Iterator[LogFault]:
    """Check the entries of a file like those of the tables. An entry in both counts once."""
    # places of their own: an entry that is in the tables too would find its place taken
    places = {
        batch_id: replace(batch, seen=bytearray(len(batch.seen)))
        for batch_id, batch in checks.batches.items()
    }
    fresh_checks = replace(checks, batches=places)
    # bytes of known entries are checked as well, but counted twice the sums would not come out
    known_checks = replace(fresh_checks, checked=CheckedBatches(), aliases=set())
    for kind in ENTRY_KINDS:
        # a shipment that was brought back has its entries in the tables and in the file
        fresh: list[Any] = []
        known: list[Any] = []
        for entry in file.entries:
            if entry.kind is kind:
                (known if _is_seen(checks.batches, entry) else fresh).append(entry.counted)
        checks.count(kind, fresh, archived=True)
        faults = (
            fresh_checks.check(kind, fresh, archived=True),
            known_checks.check(kind, known, archived=True),
        )
        for fault in chain.from_iterable(faults):
            yield replace(fault, table=f"{file.name}, {fault.table}")
    for batch_id, batch in places.items():
        seen = checks.batches[batch_id].seen
        for ordinal, rank in enumerate(batch.seen):
            seen[ordinal] = seen[ordinal] or rank


def _is_seen(batches: dict[int, BatchPositions], entry: LogEntry) -> bool:
    batch = batches.get(entry.batch_id)
    return batch is not None and entry.ordinal < len(batch.seen) and bool(batch.seen[entry.ordinal])


def check_entries(  # noqa: C901 - the checks of an entry in their order
    kind: EntryKind,
    rows: Iterable[Any],
    batch: BatchPositions | None,
    checks: RangeChecks,
    *,
    archived: bool = False,
) -> Iterator[LogFault]:
    """Yield the faults of a batch's rows of one kind.

    A sound row takes its place and joins its chain.
    """
    expected_of = kind.file_values if archived else kind.expected
    is_event, opens = kind.name == EntryName.EVENT, kind.sealed and checks.parts.opens
    events: list[EventIds] = []
    links: list[Link] = []
    for row in rows:
        _, ordinal, canonical, sealed_part, shipment_id, version, *_ = row
        if batch is None or not batch.take(ordinal, kind.rank):
            yield _fault(kind, row, "ordinal", _misplaced(batch, ordinal))
            continue
        # computed here, never read: the stored hash is what is being checked
        computed = sha256(b"\x00" + canonical).digest()
        if computed != batch.leaf_hash(ordinal):
            yield _wrong_hash(kind, row, archived=archived)
            continue
        amiss: tuple[str, str] | None = None
        try:
            document = kind.decode(canonical.decode())
            expected = expected_of(document)
            if is_event:
                links.append(link_of(shipment_id, version, computed, document.previous_hash))
                ids = event_ids(document, checks.digests)
                events.append(ids)
                amiss = ids.fault
            elif kind.name == EntryName.CONFLICT:
                amiss = conflict_fault(document, checks.digests)
        except ValueError:
            why = f"is no {kind.name} of a format that is known here"
            yield _fault(kind, row, "canonical", why)
            continue
        # nearly all entries are right: a generator for each would cost more than the question
        if not _agrees(kind, row[FIRST_VALUE:], document, expected, batch):
            yield from _wrong_columns(kind, row, document, expected, batch, archived=archived)
        if amiss is not None:
            yield _fault(kind, row, *amiss)
        if opens and (unopened := checks.parts.fault(document, sealed_part)) is not None:
            yield _fault(kind, row, "sealed_part", unopened)
    if batch is not None and is_event:
        checks.take(events, links, batch)


def _agrees(
    kind: EntryKind,
    values: tuple[Any, ...],
    document: Any,  # noqa: ANN401 - of its kind
    expected: tuple[Any, ...],
    batch: BatchPositions,
) -> bool:
    return (
        values == expected
        and document.epoch == batch.epoch
        and fits(kind, values[kind.recorded], batch)
    )


def _wrong_columns(
    kind: EntryKind,
    row: Any,  # noqa: ANN401 - a row
    document: Any,  # noqa: ANN401 - of its kind
    expected: tuple[Any, ...],
    batch: BatchPositions,
    *,
    archived: bool,
) -> Iterator[LogFault]:
    """Yield columns of the row or its batch that contradict the entry's canonical bytes."""
    values = row[FIRST_VALUE:]
    if document.epoch != batch.epoch:
        why = f"is of epoch {document.epoch}, its batch of epoch {batch.epoch}"
        yield _fault(kind, row, "canonical", why)
    if values != expected:
        columns = kind.file_columns if archived else kind.columns
        for name, found, wanted in zip(columns, values, expected, strict=True):
            if found != wanted:
                yield _fault(kind, row, name, "is not what the entry's canonical bytes say")
    if not fits(kind, values[kind.recorded], batch):
        misfit = f"does not fit that of its {kind.name} at ordinal {row[1]}"
        yield LogFault("batch", f"batch_id={row[0]}", "recorded_from, recorded_to", misfit)


def _fault(kind: EntryKind, row: Any, field: str, why: str) -> LogFault:  # noqa: ANN401 - a row
    batch_id, ordinal = row[:2]
    return LogFault(kind.name, kind.row(row[FIRST_VALUE:], batch_id, ordinal), field, why)


def fits(kind: EntryKind, recorded_at: int, batch: BatchPositions) -> bool:
    """Return whether an entry may have this time: events and their consequences may be later."""
    return recorded_at == batch.recorded_from or (
        batch.recorded_from < recorded_at <= batch.recorded_to and not kind.exact
    )


def _misplaced(batch: BatchPositions | None, ordinal: int) -> str:
    if batch is None:
        return "its batch does not exist: it was inserted, or the batch was deleted"
    if not 0 <= ordinal < len(batch.seen):
        return (
            f"its batch has only {len(batch.seen)} entries: it was inserted, or the batch was cut"
        )
    return "another entry stands there already"


def _wrong_hash(kind: EntryKind, row: Any, *, archived: bool) -> LogFault:  # noqa: ANN401 - a row
    """Return the fault: the batch was changed if row and canonical bytes agree, else the bytes."""
    batch_id, ordinal, canonical, _ = row[:FIRST_VALUE]
    named = kind.row(row[FIRST_VALUE:], batch_id, ordinal)
    try:
        document = kind.decode(canonical.decode())
        same = row[FIRST_VALUE:] == (kind.file_values if archived else kind.expected)(document)
    except ValueError:
        same = False
    if same:
        place = f"leaf_hashes, ordinal {ordinal}"
        return LogFault(
            "batch",
            f"batch_id={batch_id}",
            place,
            f"is not the leaf hash of {kind.name} ({named}), or that was changed",
        )
    return _fault(
        kind, row, "canonical", "was changed: its hash is not the leaf hash that its batch has"
    )
