"""State of a shipment: the fields that readers see, and the details that the fold remembers.

Stored in the shipment's row as JSON, so that an event which sorts last is applied without reading
the log. It holds event ids and digests, no personal data. `_FORMAT` grows when the meaning of a
remembered detail changes: the next event of an older row then folds its log again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

import orjson

from events.vocabulary import Reason, Status
from projections.fact import FIRST_KEY, SortKey
from projections.lifecycle import TERMINAL, Flag

_FORMAT: Final = 5
# Greater than every fact's key: no fact sorts after it, so the log is folded.
STALE_KEY: Final[SortKey] = (2**62, 0, "", "", "")
_STATUSES: Final = {status.value: status for status in Status}


class Estimate(NamedTuple):
    """An estimated delivery as the carrier printed it.

    The greatest counts: the newest anchor's, there the last by stamp and value.
    """

    anchor_key: SortKey
    stamp: str
    value: str
    anchor: str


class LastScan(NamedTuple):
    """The newest scan, even with an unknown code: the last sighting of the parcel.

    `at` is in the carrier's offset.
    """

    event_id: str
    at: datetime


class Signature(NamedTuple):
    """A signer, by digest: `event_id` holds the name in its sealed part, `anchor` is the
    delivery that was signed for.
    """

    stamp: str
    digest: str
    event_id: str
    anchor: str


@dataclass(slots=True, kw_only=True)
class ShipmentState:
    """The fold over a shipment's events. Only the fold changes one, and only a copy of its own.

    `deliveries` are the events of the delivery that counts, the first of them giving its time;
    those that can no longer give its signer are left out. A step that the carrier printed
    without a time gives none: `status_since` and `delivered_at` wait for the first step with a
    time, and `last_event_at` is the newest of those where there are any (`has_time`).
    `out_again`: seen out for delivery since. `pending`: ids of events that a correction or an
    enrichment names and that have not arrived. `newest_key`: of the newest event that is not an
    enrichment. `last_key`: of all folded events. `service`: as stated by the newest event with
    a service.
    """

    status: Status = Status.UNKNOWN
    reason: Reason | None = None
    status_since: datetime | None = None
    flags: frozenset[Flag] = frozenset()
    last_event_at: datetime | None = None
    has_time: bool = False
    delivered_at: datetime | None = None
    attempts: int = 0
    corrections: int = 0
    deliveries: tuple[str, ...] = ()
    out_again: bool = False
    estimate: Estimate | None = None
    promise: Estimate | None = None
    scanned: LastScan | None = None
    countries: tuple[str, ...] = ()
    service: str | None = None
    observed: tuple[tuple[str, str], ...] = ()
    signature: Signature | None = None
    pending: frozenset[str] = frozenset()
    newest_key: SortKey = FIRST_KEY
    last_key: SortKey = FIRST_KEY

    def copy(self) -> "ShipmentState":
        return ShipmentState(
            status=self.status,
            reason=self.reason,
            status_since=self.status_since,
            flags=self.flags,
            last_event_at=self.last_event_at,
            has_time=self.has_time,
            delivered_at=self.delivered_at,
            attempts=self.attempts,
            corrections=self.corrections,
            deliveries=self.deliveries,
            out_again=self.out_again,
            estimate=self.estimate,
            promise=self.promise,
            scanned=self.scanned,
            countries=self.countries,
            service=self.service,
            observed=self.observed,
            signature=self.signature,
            pending=self.pending,
            newest_key=self.newest_key,
            last_key=self.last_key,
        )

    @property
    def terminal(self) -> bool:
        """True if no further scan is expected."""
        return self.status in TERMINAL

    @property
    def estimated_delivery(self) -> str | None:
        return self.estimate.value if self.estimate else None

    @property
    def promised_delivery(self) -> str | None:
        """The first estimate, as the carrier printed it."""
        return self.promise.value if self.promise else None

    @property
    def lane(self) -> str | None:
        """Country of the first and of the last scan: `US-CA`; None where none is known."""
        return f"{self.countries[0]}-{self.countries[-1]}" if self.countries else None

    @property
    def delivered_event_id(self) -> str | None:
        return self.deliveries[0] if self.deliveries else None

    @property
    def signed_by_event_id(self) -> str | None:
        """The event with the signer's name in its sealed part."""
        return self.signature.event_id if self.signature else None

    def to_json(self) -> bytes:
        """Encode compactly and deterministically; members at their default are left out."""
        document = {
            "format": _FORMAT,
            "status": self.status,
            "reason": self.reason,
            "since": self.status_since and self.status_since.isoformat(),
            "flags": sorted(self.flags),
            "last_event_at": self.last_event_at and self.last_event_at.isoformat(),
            "has_time": self.has_time,
            "delivered_at": self.delivered_at and self.delivered_at.isoformat(),
            "attempts": self.attempts,
            "corrections": self.corrections,
            "deliveries": self.deliveries,
            "out_again": self.out_again,
            "estimate": self.estimate and tuple(self.estimate),
            "promise": self.promise
            and (1 if self.promise == self.estimate else tuple(self.promise)),
            "scanned": self._scanned(),
            "countries": self.countries,
            "service": self.service,
            "observed": self.observed,
            "signature": self.signature and tuple(self.signature),
            "pending": sorted(self.pending),
            "newest": self.newest_key,
            "last": None if self.last_key == self.newest_key else self.last_key,
        }
        return orjson.dumps({name: value for name, value in document.items() if value})

    def _scanned(self) -> tuple[str, str] | int | None:
        """Return the last scan; usually it is the newest event and needs no copy."""
        if self.scanned is None:
            return None
        event_id, at = self.scanned
        last = self.last_event_at
        if (
            event_id == self.newest_key[2]
            and last is not None
            and (at is last or at.isoformat() == last.isoformat())
        ):
            return 1
        return event_id, at.isoformat()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Parse the output of `to_json`.

        From another format it returns a state that shows the reported fields but must be
        folded from the log.
        """
        document = orjson.loads(data)
        get = document.get
        if document["format"] == _FORMAT:
            newest_key = _key(document["newest"])
            last_key = _key(document["last"]) if "last" in document else newest_key
        else:
            newest_key, last_key = FIRST_KEY, STALE_KEY
        estimate = _estimate(get("estimate"))
        promise = get("promise")
        last_event_at = _instant(get("last_event_at"))
        scanned = get("scanned")
        signature = get("signature")
        reason = get("reason")
        return cls(
            status=_STATUSES[document["status"]],
            reason=Reason(reason) if reason else None,
            status_since=_instant(get("since")),
            flags=frozenset(map(Flag, get("flags", ()))),
            last_event_at=last_event_at,
            has_time=get("has_time", False),
            delivered_at=_instant(get("delivered_at")),
            attempts=get("attempts", 0),
            corrections=get("corrections", 0),
            deliveries=tuple(get("deliveries", ())),
            out_again=get("out_again", False),
            estimate=estimate,
            promise=estimate if promise == 1 else _estimate(promise),
            scanned=_last_scan(scanned, newest_key, last_event_at),
            countries=tuple(get("countries", ())),
            service=get("service"),
            observed=tuple((kind, cause) for kind, cause in get("observed", ())),
            signature=Signature(*signature) if signature else None,
            pending=frozenset(get("pending", ())),
            newest_key=newest_key,
            last_key=last_key,
        )


# State of a shipment without events.
INITIAL: Final = ShipmentState()


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _estimate(fields: list[Any] | None) -> Estimate | None:
    return Estimate(_key(fields[0]), *fields[1:]) if fields else None


def _last_scan(
    stored: list[str] | int | None, newest_key: SortKey, last_event_at: datetime | None
) -> LastScan | None:
    if isinstance(stored, list):
        return LastScan(stored[0], datetime.fromisoformat(stored[1]))
    return LastScan(newest_key[2], last_event_at) if stored and last_event_at else None


def last_scan_id(state: Mapping[str, Any]) -> str | None:
    """Return the event id of the newest scan of a parsed state, in any format.

    None without a scan.
    """
    scanned = state.get("scanned")
    event_id: str | None = (
        scanned[0] if isinstance(scanned, list) else state["newest"][2] if scanned else None
    )
    return event_id


def _key(fields: list[Any]) -> SortKey:
    microseconds, rank, first, second, third = fields
    return (microseconds, rank, first, second, third)
