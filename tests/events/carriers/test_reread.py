"""An event whose message no longer opens is read by its raw fields as the normalizer read it, or
not at all: never otherwise.
"""

import hmac
from collections.abc import Iterator
from typing import Final

import pytest

from events.carriers import CARRIERS
from events.clear_part import clear_raw, known_texts, restored
from events.errors import UnreadableMessageError
from events.event import Reading
from events.parsing.meanings import Meaning
from events.vocabulary import Kind
from tests.events.carriers.carrier_fixtures import fixture_paths, read

WITHOUT_CODES: Final = {"australiapost", "ics_courier"}
"""All that these say is text."""


def digest(data: bytes) -> bytes:
    return hmac.digest(b"reread", data, "sha256")


def readings(carrier_id: str) -> Iterator[Reading]:
    """Yield the readings of all fixtures of a carrier, but for corrections, which are never read
    again.
    """
    for path in fixture_paths(carrier_id):
        try:
            normalized = read(CARRIERS[carrier_id], path.read_bytes())
        except UnreadableMessageError:
            continue
        yield from (
            reading for reading in normalized.readings if reading.kind is not Kind.CORRECTION
        )


@pytest.mark.parametrize("carrier_id", sorted(CARRIERS))
def test_raw_fields_say_what_the_normalizer_read_or_nothing(carrier_id: str) -> None:
    reread = 0
    for reading in readings(carrier_id):
        carrier = CARRIERS[carrier_id]
        again = carrier.reread(reading.raw)
        clear = clear_raw(reading.raw, carrier_id, digest)
        assert (
            carrier.reread(restored(clear, known_texts(carrier.texts, carrier_id, digest))) == again
        ), "erased, it reads otherwise"
        if again is not None:
            reread += 1
            assert again == Meaning(
                reading.kind, reading.status, reading.reason, reading.by_category
            ), reading.raw
    assert (reread > 0) == (carrier_id not in WITHOUT_CODES)
