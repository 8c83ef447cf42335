"""Facts in few words: `scan("in_transit", "02 10:00")` is a scan on 2 March 2026 at ten in New
York.
"""

from datetime import datetime, timedelta, timezone
from typing import Final

from events.vocabulary import Kind, Reason, Status, TimePrecision
from projections.fact import Fact

NEW_YORK: Final = timezone(timedelta(hours=-5))


def at(when: str) -> datetime:
    """Parse `DD HH:MM` of March 2026; `DD` alone is midnight."""
    day, _, clock = when.partition(" ")
    return datetime.strptime(f"2026-03-{day} {clock or '00:00'}", "%Y-%m-%d %H:%M").replace(
        tzinfo=NEW_YORK
    )


def _precision(when: str) -> TimePrecision:
    return TimePrecision.MINUTE if " " in when else TimePrecision.DAY


def scan(
    status: str,
    when: str,
    *,
    name: str | None = None,
    reason: str | None = None,
    signer: bytes | None = None,
    eta: str | None = None,
    stamp: str = "",
    code: str | None = None,
    carrier: str = "ups",
    service: str | None = None,
) -> Fact:
    return Fact(
        event_id=name or f"d1-{status}-{when}",
        kind=Kind.SCAN,
        status=Status(status),
        reason=Reason(reason) if reason else None,
        instant=at(when),
        precision=_precision(when),
        signer_digest=signer,
        estimated_delivery=eta,
        stamp=stamp,
        raw_code=code,
        carrier_id=carrier,
        service=service,
    )


def note(when: str, *, name: str, eta: str | None = None, kind: Kind = Kind.INFO) -> Fact:
    """Build a fact of its own that moves nothing: a refund notice, or a code that nobody knows
    yet.
    """
    return Fact(
        event_id=name,
        kind=kind,
        instant=at(when),
        precision=_precision(when),
        estimated_delivery=eta,
    )


def enrichment(
    anchor: Fact, *, name: str, signer: bytes | None = None, eta: str | None = None, stamp: str = ""
) -> Fact:
    return Fact(
        event_id=f"e1-{name}",
        kind=Kind.INFO,
        instant=anchor.instant,
        precision=anchor.precision,
        anchor=anchor.event_id,
        stamp=stamp,
        signer_digest=signer,
        estimated_delivery=eta,
    )


def reread(
    corrected: Fact,
    *,
    name: str,
    status: str | None,
    replaces: Fact | None = None,
    reason: str | None = None,
) -> Fact:
    """Build a correction of our own: with a status another reading, without one a retraction."""
    return Fact(
        event_id=f"c1-{name}",
        kind=Kind.CORRECTION,
        instant=corrected.instant,
        precision=corrected.precision,
        status=Status(status) if status else None,
        reason=Reason(reason) if reason else None,
        corrects=corrected.event_id,
        anchor=replaces.event_id if replaces else None,
    )


def retraction(
    when: str,
    *,
    name: str,
    target: str | None = None,
    status: str | None = None,
    code: str | None = None,
    carrier: str = "dhl_parcel_de",
) -> Fact:
    """Build a correction by the carrier, which mostly names no event."""
    return Fact(
        event_id=name,
        kind=Kind.CORRECTION,
        instant=at(when),
        precision=_precision(when),
        status=Status(status) if status else None,
        corrects=target,
        raw_code=code,
        carrier_id=carrier,
    )
