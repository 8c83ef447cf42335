import pytest

from events.carriers.canpar import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_times_are_local_to_the_address_else_to_toronto() -> None:
    said = normalized(CARRIER, "answer.xml")

    assert told(said) == [
        ("D000000000000000000001", "DEL", "delivered", "2026-02-05T09:14:42-06:00"),
        ("D000000000000000000001", "NEW", "unmapped", "2026-02-04T23:00:00-05:00"),
        ("D000000000000000000002", "PIC", "picked_up", "2026-02-04T23:00:00-05:00"),
    ]
    assert [reading.time.tz_source for reading in said.readings[:2]] == [TzSource.LOCATION, TzSource.CARRIER_DEFAULT]
    assert [rejection.pointer for rejection in said.rejections] == ["return/result[1]/events[3]"]


def test_the_signer_is_the_deliverys_and_the_estimate_the_newest_scans() -> None:
    said = normalized(CARRIER, "answer.xml")
    assert [reading.signed_by for reading in said.readings] == ["P SAMPLE", None, None]
    assert [reading.estimated_delivery for reading in said.readings] == [None, None, "2026-02-06"]


@pytest.mark.parametrize("body", [b"<trackByBarcodeResponse><return><error>x</error></return></trackByBarcodeResponse>", b"<Fault/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_xml_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
