"""A carrier event as the API shows it: the contract's keys, made of the canonical bytes in the log."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from statesvc.shipments.personal import Opener

_PLACE: Final = ("city", "region", "postal_code", "country", "facility")


def statement(document: dict[str, Any], personal: dict[str, Any] | None) -> dict[str, Any]:
    """What the carrier said: the canonical event of the contract. `personal` None: the reader may not see personal fields.

    The log leaves out what is not known; the contract shows it as null.
    """
    known = document.get
    place = known("location", {}).get
    shown = {
        "carrier_id": document["carrier_id"],
        "event_id": document["event_id"],
        "tracking_number": document["tracking_number"],
        "discriminator": known("discriminator", ""),
        "kind": document["kind"],
        "occurred_at": document["occurred_at"],
        "occurred_at_raw": document["raw"].get("time", ""),
        "tz_source": document["tz_source"],
        "time_precision": document["time_precision"],
        "status": known("status"),
        "reason": known("reason"),
        "carrier_code": known("carrier_code"),
        "by_category": known("by_category", False),
        "location": {part: place(part) for part in _PLACE},
        "piece": known("piece"),
        "estimated_delivery": known("estimated_delivery"),
        "corrects": known("corrects"),
        "anchor": known("anchor"),
    }
    return shown if personal is None else shown | personal


class Seal(NamedTuple):
    """When an entry was sealed, and its place in the log; both None until then."""

    sealed_at: datetime | None
    log_index: int | None


def event_json(document: dict[str, Any], seal: Seal, *, sealed_part: bytes | None, opener: Opener | None) -> dict[str, Any]:
    """An event with its place in the shipment's stream. `document` is its parsed canonical form; `opener` None: no scope `pii`."""
    shown = statement(document, None if opener is None else opener.part(document["event_id"], sealed_part))
    shown["version"] = document["version"]
    shown["recorded_at"] = document["recorded_at"]
    shown |= seal._asdict()
    if opener is not None:
        shown["erased"] = opener.erased
    return shown
