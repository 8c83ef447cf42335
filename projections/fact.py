"""A carrier event as the fold sees it: only the fields that state is made of, and its sort key.

The key is a function of the event alone, so that any order of arrival gives the same order of
folding: (time, rank, event key). A scan known to the day sorts at the day's start up to rank 3 and
at its end above. An enrichment has the time of its anchor and a rank above all scans, so it always
sorts after its anchor, then by its stamp and value; so does a carrier's own signature event, which
often has the time of the delivery it signs. A correction sorts after both: a correction of "the
previous event" must find that event before it.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, convert
from msgspec.json import Decoder

from events.event import value
from events.vocabulary import RANK, Kind, Reason, Status, TimePrecision, TzSource

# (microseconds since 1970, rank, event key); the event key is the event id, of an enrichment
# (stamp, value, event id).
SortKey = tuple[int, int, str, str, str]

FIRST_KEY: Final[SortKey] = (-(2**62), 0, "", "", "")

ENRICHMENT_RANK: Final = max(RANK.values()) + 1
CORRECTION_RANK: Final = ENRICHMENT_RANK + 1
_START_OF_DAY_RANK_MAX: Final = RANK[Status.IN_TRANSIT]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final[dict[str, Kind]] = {kind.value: kind for kind in Kind}
_STATUSES: Final[dict[str | None, Status]] = {status.value: status for status in Status}
_REASONS: Final[dict[str | None, Reason]] = {reason.value: reason for reason in Reason}
_PRECISIONS: Final[dict[str, TimePrecision]] = {
    precision.value: precision for precision in TimePrecision
}


class LoggedRaw(Struct, frozen=True, gc=False):
    """The carrier's own words."""

    type: str | None = None
    code: str | None = None


class LoggedPosition(Struct, frozen=True, gc=False):
    """Place of an event, as far as state is made of it."""

    country: str | None = None


NOWHERE: Final = LoggedPosition()


class LoggedFact(Struct, frozen=True, gc=False, kw_only=True):
    """An event as the log holds it, as far as the fold reads it.

    Whole logs are read so: only the named fields become objects, fields of a later version are
    skipped, and words stay text, because a later version may have words that are not known here.
    """

    event_id: str
    kind: str
    occurred_at: str
    time_precision: str
    carrier_id: str
    raw: LoggedRaw
    tz_source: str = ""
    status: str | None = None
    reason: str | None = None
    corrects: str | None = None
    anchor: str | None = None
    stamp: str | None = None
    estimated_delivery: str | None = None
    service: str | None = None
    signer_digest: str | None = None
    location: LoggedPosition = NOWHERE
    version: int = 0


class LoggedEvent(LoggedFact, frozen=True, gc=False, kw_only=True):
    """The fields that a shipment's row needs besides those of the fact."""

    version: int
    recorded_at: str
    tracking_number: str
    discriminator: str = ""


decode_fact: Final = Decoder(LoggedFact).decode
decode_event: Final = Decoder(LoggedEvent).decode


@value(frozen=True, slots=True, kw_only=True)
class Fact:
    """An event. `instant` has a fixed offset, so its wall clock is the carrier's local time.

    `is_timed`: the carrier printed a time; without it `instant` is the time of receipt and is
    used for sorting only. `corrects` names the event that a correction is about, `anchor` the
    event that an enrichment belongs to, or the correction that a correction of our own
    replaces. `signer_digest` represents the signer; the name itself is sealed.
    """

    event_id: str
    kind: Kind
    instant: datetime
    precision: TimePrecision = TimePrecision.SECOND
    is_timed: bool = True
    status: Status | None = None
    reason: Reason | None = None
    corrects: str | None = None
    anchor: str | None = None
    stamp: str = ""
    estimated_delivery: str | None = None
    signer_digest: bytes | None = None
    service: str | None = None
    carrier_id: str = ""
    raw_type: str | None = None
    raw_code: str | None = None
    country: str | None = None
    version: int = field(default=0, compare=False)
    """Position in the shipment's stream (0: not appended yet).

    It is the order of arrival, so the fold ignores it.
    """
    key: SortKey = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _sort_key(self))

    @property
    def enriches(self) -> bool:
        """True if this is a value added to an earlier event."""
        return self.anchor is not None and self.kind is Kind.INFO

    @property
    def names_signer(self) -> bool:
        """True if this is the carrier's own event of the signature for the delivery before it."""
        return self.kind is Kind.INFO and self.anchor is None and self.signer_digest is not None


def _sort_key(fact: Fact) -> SortKey:
    rank = 0
    if fact.kind is Kind.SCAN:
        rank = RANK[fact.status]
    elif fact.kind is Kind.CORRECTION:
        rank = CORRECTION_RANK
    elif fact.kind is Kind.INFO and (fact.anchor is not None or fact.signer_digest is not None):
        rank = ENRICHMENT_RANK
    when = fact.instant
    if fact.precision is TimePrecision.DAY:
        when = (
            when.replace(hour=0, minute=0, second=0, microsecond=0)
            if rank <= _START_OF_DAY_RANK_MAX
            else when.replace(hour=23, minute=59, second=59, microsecond=999_999)
        )
    since = when - _EPOCH
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if rank == ENRICHMENT_RANK and fact.enriches:
        digest = fact.signer_digest.hex() if fact.signer_digest else ""
        return (microseconds, rank, fact.stamp, fact.estimated_delivery or digest, fact.event_id)
    return (microseconds, rank, fact.event_id, "", "")


def fact_from_canonical(document: Mapping[str, Any]) -> Fact:
    return fact_from_log(convert(document, LoggedFact))


def fact_from_log(logged: LoggedFact) -> Fact:
    """Return the fact of an event in the log.

    Values of a later version have no effect: an unknown kind becomes `info`, an unknown status
    becomes None, an unknown precision becomes seconds.
    """
    digest = logged.signer_digest
    kind = _KINDS.get(logged.kind)
    return Fact(
        event_id=logged.event_id,
        kind=kind or Kind.INFO,
        instant=datetime.fromisoformat(logged.occurred_at),
        precision=_PRECISIONS.get(logged.time_precision, TimePrecision.SECOND),
        is_timed=logged.tz_source != TzSource.RECEIVED.value,
        status=_STATUSES.get(logged.status),
        reason=_REASONS.get(logged.reason),
        corrects=logged.corrects,
        anchor=logged.anchor if kind else None,
        stamp=logged.stamp or "",
        estimated_delivery=logged.estimated_delivery if kind else None,
        signer_digest=bytes.fromhex(digest) if digest and kind else None,
        service=logged.service,
        carrier_id=logged.carrier_id,
        raw_type=logged.raw.type,
        raw_code=logged.raw.code,
        country=logged.location.country,
        version=logged.version,
    )
