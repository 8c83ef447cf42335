"""The fact that an event states, made without the log: what the log must read back as."""

from datetime import datetime, timezone

from events.event import Event
from events.vocabulary import TzSource
from projections.fact import Fact


def _fixed(instant: datetime) -> datetime:
    """Return the same wall clock and instant under a fixed offset: two zones' times of a repeated
    hour would never compare as equal.
    """
    if isinstance(instant.tzinfo, timezone):
        return instant
    offset = instant.utcoffset()
    if offset is None:
        raise ValueError(
            "occurred_at has no offset; a normalizer must give every event an aware time"
        )
    return instant.replace(tzinfo=timezone(offset), fold=0)


def fact_of(event: Event, *, signer_digest: bytes | None, version: int = 0) -> Fact:
    """Build a fact from the event itself."""
    return Fact(
        event_id=event.event_id,
        kind=event.kind,
        instant=_fixed(event.occurred_at),
        precision=event.time_precision,
        is_timed=event.tz_source is not TzSource.RECEIVED,
        status=event.status,
        reason=event.reason,
        corrects=event.corrects,
        anchor=event.anchor,
        stamp=event.stamp,
        estimated_delivery=event.estimated_delivery,
        service=event.service,
        signer_digest=signer_digest,
        carrier_id=event.carrier_id,
        raw_type=event.raw.type,
        raw_code=event.raw.code,
        country=event.location.country,
        version=version,
    )
