"""Readings of fixtures, as plain values that a test can quote.

`fixtures/<carrier>/` holds bodies, `expected/<carrier>.json` what they say: `shows` names the rules
that a fixture is there for, `events` and `rejections` are everything that the normalizer reads.
`python -m tests.events.carriers.golden --write` adds new fixtures to it, for you to compare with
the carrier's documentation; it never changes an expectation.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from events.carriers.carrier import Carrier
from events.event import Normalized, Reading
from events.identity.ids import carrier_code, identify

RECEIVED_AT: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FIXTURES: Final = Path(__file__).parent / "fixtures"
EXPECTED: Final = Path(__file__).parent / "expected"


def fixture_paths(carrier_id: str) -> list[Path]:
    """Return the bodies of a carrier, in the order of their names."""
    folder = FIXTURES / carrier_id
    return sorted(folder.iterdir()) if folder.is_dir() else []


def expectations(carrier_id: str) -> dict[str, Any]:
    """Return by name of the fixture what it shows, its events and its rejections."""
    path = EXPECTED / f"{carrier_id}.json"
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return found


def read(carrier: Carrier, body: bytes) -> Normalized:
    return carrier.normalizers[carrier.stable](body, RECEIVED_AT)


def scans(normalized: Normalized) -> list[tuple[str | None, str | None, str, str]]:
    """Return (number, code, status or kind, instant) of each reading."""
    return [
        (
            reading.tracking_number,
            "/".join(
                part for part in (reading.raw.type, reading.raw.code, reading.raw.reason) if part
            )
            or None,
            str(reading.status or reading.kind),
            reading.time.instant.isoformat(),
        )
        for reading in normalized.readings
    ]


def described(carrier_id: str, normalized: Normalized) -> dict[str, Any]:
    """Describe all that a body says, in the words of the contract."""
    return {
        "events": [_described(carrier_id, reading) for reading in normalized.readings],
        "rejections": [
            f"{rejection.pointer}: {rejection.why}" for rejection in normalized.rejections
        ],
    }


def _described(carrier_id: str, reading: Reading) -> dict[str, Any]:
    """Describe a reading, with optional fields only where they say something."""
    event = identify(reading, carrier_id=carrier_id, digest=bytes, allow_unnumbered=True)
    place = reading.place
    optional: dict[str, object] = {
        "discriminator": event.discriminator,
        "piece": event.piece,
        "reason": event.reason,
        "by_category": event.by_category,
        "further_codes": list(reading.raw.further),
        "zone": event.raw_zone,
        "time_flag": event.time_flag,
        "native_id": reading.native_id,
        "native_id_per_number": reading.native_id_per_number,
        "corrects": event.corrects,
        "estimated_delivery": event.estimated_delivery,
        "service": event.service,
        "stamp": event.stamp,
        "description": event.personal.description,
        "signed_by": event.personal.signed_by,
        "delivery_address": event.personal.delivery_address,
        "city": place.city,
        "region": place.region,
        "postal_code": place.postal_code,
        "country": place.country,
        "facility": place.facility,
    }
    return {
        "event_id": event.event_id,
        "tracking_number": reading.tracking_number,
        "carrier_code": carrier_code(reading.raw),
        "kind": event.kind,
        "status": event.status,
        "occurred_at": event.occurred_at.isoformat(),
        "occurred_at_raw": event.occurred_at_raw,
        "tz_source": event.tz_source,
        "time_precision": event.time_precision,
    } | {name: value for name, value in optional.items() if value}
