"""Which columns of an entry's row repeat what its canonical document binds, and what they must then hold. Pure.

The values come as `entries.sql` selects them: ids as text, times as datetimes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

Document = Mapping[str, Any]
_time = datetime.fromisoformat


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of entry. `rank` is its place in a batch; `expected` gives the values of `columns`, the first `key` of which name a row."""

    name: str
    rank: int
    key: int
    columns: tuple[str, ...]
    expected: Callable[[Document], tuple[Any, ...]]

    def row(self, values: tuple[Any, ...], batch_id: int, ordinal: int) -> str:
        """How a row is named."""
        named = zip(self.columns[: self.key], values, strict=False)
        return " ".join([*(f"{name}={value}" for name, value in named), f"batch_id={batch_id}", f"ordinal={ordinal}"])


def _event(document: Document) -> tuple[Any, ...]:
    known = document.get
    return (
        document["shipment_id"],
        document["version"],
        _time(document["recorded_at"]),
        _time(document["received_at"]),
        _time(document["occurred_at"]),
        document["message_id"],
        document["carrier_id"],
        document["event_id"],
        document["kind"],
        known("status"),
        known("carrier_code"),
        known("by_category", False),
        f"{document['normalizer']}@{document['normalizer_version']}",
    )


def _conflict(document: Document) -> tuple[Any, ...]:
    return (
        document["shipment_id"],
        document["claimed_shipment_id"],
        _time(document["recorded_at"]),
        document["message_id"],
        document["carrier_id"],
        document["event_id"],
        document["facts_digest"],
    )


def _transition(document: Document) -> tuple[Any, ...]:
    return (
        document["shipment_id"],
        document["sequence"],
        _time(document["recorded_at"]),
        document["message_id"],
        document["from"],
        document["to"],
        document["event_id"],
        document["worker"],
    )


def _attempt(document: Document) -> tuple[Any, ...]:
    return (
        document["shipment_id"],
        document["sequence"],
        document["subscription_id"],
        document["number"],
        _time(document["recorded_at"]),
        _time(document["started_at"]),
        document["webhook_id"],
        document["outcome"],
        document.get("status_code"),
        document["duration_ms"],
    )


def _action(document: Document) -> tuple[Any, ...]:
    return document["actor"], document["verb"], document["target"], _time(document["recorded_at"])


KINDS: Final = (
    Kind(
        "event",
        1,
        2,
        (
            *("shipment_id", "version", "recorded_at", "received_at", "occurred_at", "message_id", "carrier_id", "event_id", "kind"),
            *("status", "carrier_code", "by_category", "normalizer"),
        ),
        _event,
    ),
    Kind(
        "conflict",
        2,
        1,
        ("shipment_id", "claimed_shipment_id", "recorded_at", "message_id", "carrier_id", "event_id", "facts_digest"),
        _conflict,
    ),
    Kind(
        "transition",
        3,
        2,
        ("shipment_id", "sequence", "recorded_at", "message_id", "from_status", "to_status", "event_id", "worker"),
        _transition,
    ),
    Kind(
        "attempt",
        4,
        4,
        (
            *("shipment_id", "sequence", "subscription_id", "number", "recorded_at", "started_at", "webhook_id", "outcome"),
            *("status_code", "duration_ms"),
        ),
        _attempt,
    ),
    Kind("action", 5, 0, ("actor", "verb", "target", "recorded_at"), _action),
)
"""In the order in which a batch has them."""
