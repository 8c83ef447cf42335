import pytest

from events.carriers.canadapost import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import TimePrecision, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_abbreviated_zones_are_offsets_and_codes_keep_their_zeros() -> None:
    said = normalized(CARRIER, "detail.xml")

    assert told(said) == [
        ("2000000000000001", "0174", "out_for_delivery", "2026-02-08T08:27:43-03:30"),
        ("2000000000000001", "1496", "delivered", "2026-02-05T11:59:59-08:00"),
        ("2000000000000001", "20", "info", "2026-02-05T11:59:59-08:00"),
        ("2000000000000001", "174", "unmapped", "2026-02-04T08:00:00-05:00"),
        ("2000000000000001", "9999", "returning", "2026-02-03T00:00:00-05:00"),
    ]
    assert [reading.time.zone for reading in said.readings] == ["NST", "HNP", None, "EST", None]
    assert [reading.time.tz_source for reading in said.readings] == [
        TzSource.EXPLICIT,
        TzSource.EXPLICIT,
        TzSource.LOCATION,
        TzSource.EXPLICIT,
        TzSource.CARRIER_DEFAULT,
    ]
    assert said.readings[4].time.precision is TimePrecision.DAY
    assert [rejection.pointer for rejection in said.rejections] == ["significant-events/occurrence[6]"]


def test_a_signature_stands_on_the_delivery_or_on_its_own_event() -> None:
    assert [reading.signed_by for reading in normalized(CARRIER, "detail.xml").readings] == [None, "P SAMPLE", "P SAMPLE", None, None]


def test_the_changed_date_is_the_estimate_of_the_newest_scan() -> None:
    assert [reading.estimated_delivery for reading in normalized(CARRIER, "detail.xml").readings] == ["2026-02-09", None, None, None, None]


def test_a_summary_tells_one_event_by_its_type() -> None:
    said = normalized(CARRIER, "summary.xml")

    assert told(said) == [
        ("2000000000000002", "INDUCTION", "picked_up", "2026-02-04T13:34:57-05:00"),
        ("2000000000000003", "DELIVERED", "delivered", "2026-02-04T13:34:57-05:00"),
    ]
    assert (said.readings[0].estimated_delivery, said.readings[1].signed_by) == ("2026-02-06", "P SAMPLE")


@pytest.mark.parametrize("body", [b"<messages><message><code>004</code></message></messages>", b"<tracking-summary/>", b"<wrapper/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


def test_other_xml_is_an_unknown_format() -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, b"<html/>")
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
