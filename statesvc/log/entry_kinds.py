"""The seven kinds of entries, with the columns that repeat their canonical documents. Pure.

The shapes of the documents are in `events.entry.kinds` and `entry_documents`. Ids are text, times
are microseconds since 2000, as `entries.sql` selects them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from events.entry.kinds import EntryName, offset_seconds
from events.identity.recipes import number_of
from statesvc.log import entry_documents
from statesvc.log.entry_documents import (
    ActionDocument,
    AttemptDocument,
    ConflictDocument,
    EventDocument,
    FanoutDocument,
    ObservationDocument,
    TransitionDocument,
)

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ArchiveColumns:
    """The columns of archive files where they are others than those of the table, and their
    values.
    """

    columns: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind:
    """One kind of entry.

    `expected` gives the values of `columns`, the first `key` of which name a row.

    `decode` raises ValueError; `expected` too, for a time that is none. `sealed`: its row may have
    a sealed part. `archive_columns`: of its archive files, whose format stays as it is, while the columns
    of tables follow what statements ask for. `exact`: it is recorded exactly at the time of its
    batch; events and what they caused may be microseconds later. `verified`: modules of
    `statesvc.addons.verify` that check more of it than `entries` checks of all. `shown`: calls
    besides `GET /v1/feed`, which shows all.
    """

    name: EntryName
    says: str
    written: str
    writer: str
    verified: tuple[str, ...] = ()
    shown: tuple[str, ...]
    key: int
    placed: tuple[str, ...] = ()
    """Columns of its position that the key of its table has too."""
    sealed: bool = False
    exact: bool = False
    columns: tuple[str, ...]
    decode: Callable[[bytes], Any]
    expected: Callable[[Any], tuple[Any, ...]]
    archive_columns: ArchiveColumns | None = None

    @property
    def rank(self) -> int:
        return _RANKS[self.name]

    @property
    def file_columns(self) -> tuple[str, ...]:
        return self.columns if self.archive_columns is None else self.archive_columns.columns

    def file_values(self, document: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of its kind
        """Return the values of the file's columns. Raises ValueError."""
        return (
            self.expected(document)
            if self.archive_columns is None
            else self.archive_columns.values(document)
        )

    @property
    def unique(self) -> tuple[str, ...]:
        return (*self.columns[: self.key], *self.placed, "recorded_at")

    @property
    def recorded(self) -> int:
        """Index of the column with the time of record, in tables and files alike."""
        return self.columns.index("recorded_at")

    def row(self, values: tuple[Any, ...], batch_id: int, ordinal: int) -> str:
        named = zip(self.columns[: self.key], values, strict=False)
        return " ".join(
            [
                *(f"{name}={value}" for name, value in named),
                f"batch_id={batch_id}",
                f"ordinal={ordinal}",
            ]
        )


@lru_cache(maxsize=16_384)
def read_time(text: str) -> tuple[int, datetime]:
    """Parse a time into microseconds since 2000 and a datetime. Raises ValueError.

    Cached, because all entries of a batch are recorded at about the same time.
    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without an offset")
    return (at - _EPOCH) // _MICROSECOND, at


def _time(text: str) -> int:
    return read_time(text)[0]


@lru_cache(maxsize=1024)
def _normalizer(name: str, version: str) -> str:
    return f"{name}@{version}"


def _event(document: EventDocument) -> tuple[Any, ...]:
    raw, printed = document.raw, document.tracking_number
    return (
        *_filed_event(document),
        raw.type,
        raw.code,
        raw.reason,
        raw.text,
        document.corrects,
        None if printed == number_of(document.carrier_id, printed) else printed,
        offset_seconds(read_time(document.occurred_at)[1]),
    )


def _filed_event(document: EventDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.version,
        read_time(document.recorded_at)[0],
        read_time(document.received_at)[0],
        read_time(document.occurred_at)[0],
        document.message_id,
        document.carrier_id,
        document.event_id,
        document.kind,
        document.status,
        document.carrier_code,
        document.by_category,
        _normalizer(document.normalizer, document.normalizer_version),
    )


def _conflict(document: ConflictDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.claimed_shipment_id,
        _time(document.recorded_at),
        document.message_id,
        document.carrier_id,
        document.event_id,
        document.facts_digest,
    )


def _transition(document: TransitionDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.sequence,
        _time(document.recorded_at),
        document.from_status,
        document.to_status,
    )


def _filed_transition(document: TransitionDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.sequence,
        _time(document.recorded_at),
        document.message_id,
        document.from_status,
        document.to_status,
        document.event_id,
        document.worker,
    )


def _fanout(document: FanoutDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.sequence,
        _time(document.recorded_at),
        " ".join(document.subscriptions),
        document.replayed,
    )


def _attempt(document: AttemptDocument) -> tuple[Any, ...]:
    made = document.only_try
    tries = (
        (None, None, None, document.listed_tries)
        if made is None
        else (_time(made.started_at), made.duration_ms, made.status_code, None)
    )
    return (
        document.shipment_id,
        document.sequence,
        document.subscription_id,
        _time(document.recorded_at),
        document.outcome,
        document.number,
        *tries,
    )


def _filed_attempt(document: AttemptDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.sequence,
        document.subscription_id,
        _time(document.recorded_at),
        document.webhook_id,
        document.outcome,
        document.number,
    )


def _observation(document: ObservationDocument) -> tuple[Any, ...]:
    return (
        document.shipment_id,
        document.version,
        document.kind,
        _time(document.recorded_at),
        _time(document.since),
    )


def _action(document: ActionDocument) -> tuple[Any, ...]:
    return document.actor, document.verb, document.target, _time(document.recorded_at)


_FILED_EVENT: Final = (
    "shipment_id",
    "version",
    "recorded_at",
    "received_at",
    "occurred_at",
    "message_id",
    "carrier_id",
    "event_id",
    "kind",
    "status",
    "carrier_code",
    "by_category",
    "normalizer",
)
_AUDIT, _EVIDENCE = (
    "GET /v1/shipments/{carrier_id}/{tracking_number}/audit",
    "GET /v1/shipments/{carrier_id}/{tracking_number}/evidence",
)
_HISTORY: Final = "GET /v1/shipments/{carrier_id}/{tracking_number}/history"
# In the order in which a batch has them.
ENTRY_KINDS: Final = (
    EntryKind(
        name=EntryName.EVENT,
        says="a carrier's statement ([identity.md](identity.md), [schema.md](schema.md))",
        written="with its message",
        writer="statesvc/append/write_entries.py",
        verified=("chain", "event_ids", "key_rows", "message_rows", "log_state"),
        shown=(_HISTORY, _AUDIT, _EVIDENCE),
        key=2,
        sealed=True,
        columns=(
            *_FILED_EVENT,
            "raw_type",
            "raw_code",
            "raw_reason",
            "raw_text",
            "corrects",
            "printed_number",
            "occurred_offset_seconds",
        ),
        decode=entry_documents.event,
        expected=_event,
        archive_columns=ArchiveColumns(_FILED_EVENT, _filed_event),
    ),
    EntryKind(
        name=EntryName.CONFLICT,
        says="the same event id with other facts",
        written="with its message",
        writer="statesvc/append/write_entries.py",
        verified=("event_ids", "key_rows"),
        shown=(_AUDIT, _EVIDENCE),
        key=1,
        placed=("batch_id", "ordinal"),
        sealed=True,
        exact=True,
        columns=(
            "shipment_id",
            "claimed_shipment_id",
            "recorded_at",
            "message_id",
            "carrier_id",
            "event_id",
            "facts_digest",
        ),
        decode=entry_documents.conflict,
        expected=_conflict,
    ),
    EntryKind(
        name=EntryName.TRANSITION,
        says="a status change that follows",
        written="with its event",
        writer="statesvc/append/write_entries.py",
        shown=("GET /v1/stream", "GET /v1/feed/transitions", _AUDIT, _EVIDENCE),
        key=2,
        columns=("shipment_id", "sequence", "recorded_at", "from_status", "to_status"),
        decode=entry_documents.transition,
        expected=_transition,
        archive_columns=ArchiveColumns(
            (
                "shipment_id",
                "sequence",
                "recorded_at",
                "message_id",
                "from_status",
                "to_status",
                "event_id",
                "worker",
            ),
            _filed_transition,
        ),
    ),
    EntryKind(
        name=EntryName.FANOUT,
        says="the receivers of a change",
        written="with its event; by a replay",
        writer="statesvc/log/fanouts.py",
        verified=("notification_rows",),
        shown=(_AUDIT, _EVIDENCE),
        key=2,
        placed=("batch_id",),
        columns=("shipment_id", "sequence", "recorded_at", "subscriptions", "replayed"),
        decode=entry_documents.fanout,
        expected=_fanout,
    ),
    EntryKind(
        name=EntryName.ATTEMPT,
        says="the end of a notification, with all tries",
        written="when it ends",
        writer="statesvc/delivery/attempt_entry.py",
        verified=("notification_rows",),
        shown=("GET /v1/subscriptions/{subscription_id}/attempts", _AUDIT, _EVIDENCE),
        key=3,
        placed=("batch_id",),
        sealed=True,
        exact=True,
        columns=(
            "shipment_id",
            "sequence",
            "subscription_id",
            "recorded_at",
            "outcome",
            "number",
            "started_at",
            "duration_ms",
            "status_code",
            "tries",
        ),
        decode=entry_documents.attempt,
        expected=_attempt,
        archive_columns=ArchiveColumns(
            (
                "shipment_id",
                "sequence",
                "subscription_id",
                "recorded_at",
                "webhook_id",
                "outcome",
                "number",
            ),
            _filed_attempt,
        ),
    ),
    EntryKind(
        name=EntryName.OBSERVATION,
        says="a shipment's missed deadline ([expectations.md](expectations.md))",
        written="when its deadline has passed",
        writer="statesvc/addons/expectations/observe.py",
        shown=(_HISTORY, _AUDIT, _EVIDENCE),
        key=3,
        exact=True,
        columns=("shipment_id", "version", "kind", "recorded_at", "since"),
        decode=entry_documents.observation,
        expected=_observation,
    ),
    EntryKind(
        name=EntryName.ACTION,
        says="an act of an operator or of the service's rules",
        written="with its effect",
        writer="statesvc/log/actions.py",
        verified=("forks", "log_state"),
        shown=("GET /v1/actions",),
        key=0,
        placed=("batch_id", "ordinal"),
        exact=True,
        columns=("actor", "verb", "target", "recorded_at"),
        decode=entry_documents.action,
        expected=_action,
    ),
)
KINDS_BY_NAME: Final[Mapping[str, EntryKind]] = {kind.name: kind for kind in ENTRY_KINDS}
_RANKS: Final = {name: rank for rank, name in enumerate(EntryName, start=1)}
