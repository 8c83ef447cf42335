"""What a normalizer tells about a fixture, as plain values that a test can quote."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from events.carriers.carrier import Carrier
from events.event import Normalized, Reading

RECEIVED_AT: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FIXTURES: Final = Path(__file__).parent / "fixtures"


def normalized(carrier: Carrier, name: str) -> Normalized:
    return carrier.normalizers[carrier.stable]((FIXTURES / carrier.carrier_id / name).read_bytes(), RECEIVED_AT)


def read(carrier: Carrier, body: bytes) -> Normalized:
    return carrier.normalizers[carrier.stable](body, RECEIVED_AT)


def told(said: Normalized) -> list[tuple[str | None, str | None, str, str]]:
    """(number, code, status or kind, instant) of each reading."""
    return [(reading.tracking_number, code(reading), what(reading), reading.time.instant.isoformat()) for reading in said.readings]


def code(reading: Reading) -> str | None:
    raw = reading.raw
    return "/".join(part for part in (raw.type, raw.code, raw.reason) if part) or None


def what(reading: Reading) -> str:
    return str(reading.status or reading.kind)
