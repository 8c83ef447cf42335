"""The seven kinds of entries: which columns of tables and of archive files repeat the canonical document, with which values. Pure.

Ids are text, times microseconds since 2000, as `entries.sql` selects them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from events.entry.kinds import offset_seconds
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
_EXACT: Final = frozenset({"conflict", "attempt", "observation", "action"})
"""Events and what they caused may be microseconds later than their batch."""


@dataclass(frozen=True, slots=True)
class Filed:
    """The columns of archive files where they are others than those of the table, and their values."""

    columns: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class EntryKind:
    """One kind of entry. `rank` is its place in a batch; `expected` gives the values of `columns`, the first `key` of which name a row.

    `decode` raises ValueError; `expected` too, for a time that is none. `sealed`: its row may have a sealed part. `filed`: what an archive
    file has; its format stays as it is, while the columns of tables follow what statements ask for.
    """

    name: str
    rank: int
    key: int
    sealed: bool
    columns: tuple[str, ...]
    decode: Callable[[bytes], Any]
    expected: Callable[[Any], tuple[Any, ...]]
    filed: Filed | None = None

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of a file that are this kind's."""
        return self.columns if self.filed is None else self.filed.columns

    def file_values(self, document: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of its kind
        """Return the values of the file's columns. Raises ValueError."""
        return self.expected(document) if self.filed is None else self.filed.values(document)

    @property
    def exact(self) -> bool:
        """True if it is recorded exactly at the time of its batch."""
        return self.name in _EXACT

    @property
    def recorded(self) -> int:
        """Index of the column with the time of record, in tables and files alike."""
        return self.columns.index("recorded_at")

    def row(self, values: tuple[Any, ...], batch_id: int, ordinal: int) -> str:
        """Return the name of a row."""
        named = zip(self.columns[: self.key], values, strict=False)
        return " ".join([*(f"{name}={value}" for name, value in named), f"batch_id={batch_id}", f"ordinal={ordinal}"])


@lru_cache(maxsize=16_384)
def read_time(text: str) -> tuple[int, datetime]:
    """Parse a time: in microseconds since 2000, and as it is written. Raises ValueError.

    Cached, because all entries of a batch are recorded at about one time, and the events of a message came at one.
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
    return document.shipment_id, document.sequence, _time(document.recorded_at), document.from_status, document.to_status


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
        (None, None, None, document.listed_tries) if made is None else (_time(made.started_at), made.duration_ms, made.status_code, None)
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
    return document.shipment_id, document.version, document.kind, _time(document.recorded_at), _time(document.since)


def _action(document: ActionDocument) -> tuple[Any, ...]:
    return document.actor, document.verb, document.target, _time(document.recorded_at)


_FILED_EVENT: Final = (
    *("shipment_id", "version", "recorded_at", "received_at", "occurred_at", "message_id", "carrier_id", "event_id", "kind"),
    *("status", "carrier_code", "by_category", "normalizer"),
)
ENTRY_KINDS: Final = (
    EntryKind(
        "event",
        1,
        2,
        True,
        (*_FILED_EVENT, "raw_type", "raw_code", "raw_reason", "raw_text", "corrects", "printed_number", "occurred_offset_seconds"),
        entry_documents.event,
        _event,
        Filed(_FILED_EVENT, _filed_event),
    ),
    EntryKind(
        "conflict",
        2,
        1,
        True,
        ("shipment_id", "claimed_shipment_id", "recorded_at", "message_id", "carrier_id", "event_id", "facts_digest"),
        entry_documents.conflict,
        _conflict,
    ),
    EntryKind(
        "transition",
        3,
        2,
        False,
        ("shipment_id", "sequence", "recorded_at", "from_status", "to_status"),
        entry_documents.transition,
        _transition,
        Filed(
            ("shipment_id", "sequence", "recorded_at", "message_id", "from_status", "to_status", "event_id", "worker"), _filed_transition
        ),
    ),
    EntryKind(
        "fanout",
        4,
        2,
        False,
        ("shipment_id", "sequence", "recorded_at", "subscriptions", "replayed"),
        entry_documents.fanout,
        _fanout,
    ),
    EntryKind(
        "attempt",
        5,
        3,
        True,
        (
            *("shipment_id", "sequence", "subscription_id", "recorded_at", "outcome", "number"),
            *("started_at", "duration_ms", "status_code", "tries"),
        ),
        entry_documents.attempt,
        _attempt,
        Filed(("shipment_id", "sequence", "subscription_id", "recorded_at", "webhook_id", "outcome", "number"), _filed_attempt),
    ),
    EntryKind(
        "observation",
        6,
        3,
        False,
        ("shipment_id", "version", "kind", "recorded_at", "since"),
        entry_documents.observation,
        _observation,
    ),
    EntryKind("action", 7, 0, False, ("actor", "verb", "target", "recorded_at"), entry_documents.action, _action),
)
"""In the order in which a batch has them."""
