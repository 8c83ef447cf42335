"""A carrier event as the API shows it: the contract's keys, made of the canonical bytes in the log."""

from typing import Any

from statesvc.api.read.personal import Opener


def statement(document: dict[str, Any], personal: dict[str, Any] | None) -> dict[str, Any]:
    """What the carrier said: the canonical event of the contract. `personal` None: the reader may not see personal fields."""
    shown = {
        "carrier_id": document["carrier_id"],
        "event_id": document["event_id"],
        "tracking_number": document["tracking_number"],
        "discriminator": document["discriminator"],
        "kind": document["kind"],
        "occurred_at": document["occurred_at"],
        "occurred_at_raw": document["raw"]["time"],
        "tz_source": document["tz_source"],
        "time_precision": document["time_precision"],
        "status": document["status"],
        "reason": document["reason"],
        "carrier_code": document["carrier_code"],
        "by_category": document["by_category"],
        "location": document["location"],
        "piece": document["piece"],
        "estimated_delivery": document["estimated_delivery"],
        "corrects": document["corrects"],
        "anchor": document["anchor"],
    }
    return shown if personal is None else shown | personal


def event_json(document: dict[str, Any], *, sealed_part: bytes | None, opener: Opener | None) -> dict[str, Any]:
    """An event with its place in the shipment's stream. `document` is its parsed canonical form; `opener` None: no scope `pii`."""
    shown = statement(document, None if opener is None else opener.part(document["event_id"], sealed_part))
    shown["version"] = document["version"]
    shown["recorded_at"] = document["recorded_at"]
    shown["sealed_at"] = None
    shown["log_index"] = None
    if opener is not None:
        shown["erased"] = opener.erased
    return shown
