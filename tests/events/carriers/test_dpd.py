import pytest

from events.carriers.dpd import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_only_reached_steps_are_events_and_the_answer_names_no_parcel() -> None:
    said = normalized(CARRIER, "life_cycle.xml")

    assert told(said) == [
        (None, "Depot", "in_transit", "2026-02-08T04:09:55+01:00"),
        (None, "NewStep", "unmapped", "2026-02-08T14:43:00+01:00"),
    ]
    assert said.readings[0].place == EventPlace(city="Mechelen", country="BE")
    assert [rejection.pointer for rejection in said.rejections] == ["statusInfo[3]"]


def test_steps_in_json_name_their_parcel() -> None:
    said = normalized(CARRIER, "life_cycle.json")

    assert told(said) == [
        ("01235000000001", "ACCEPTED", "picked_up", "2026-02-07T17:10:00+01:00"),
        ("01235000000001", "OUT_FOR_DELIVERY", "out_for_delivery", "2026-02-08T07:45:00+01:00"),
    ]
    assert (said.readings[0].place, said.readings[0].description) == (
        EventPlace(city="Hamburg", country="DE"),
        "DPD has received your parcel.",
    )


def test_traces_of_france_are_in_french_time() -> None:
    assert told(normalized(CARRIER, "france.xml")) == [("250000000000000001", "50", "delivered", "2026-07-15T09:15:00+02:00")]


def test_a_group_parcel_tells_its_status_only_without_events() -> None:
    said = normalized(CARRIER, "group.json")

    assert told(said) == [
        ("05300000000001", "OUT_FOR_DELIVERY", "out_for_delivery", "2026-02-08T08:15:00+00:00"),
        ("05300000000002", "DELIVERED", "delivered", "2026-11-21T12:00:00+00:00"),
    ]
    assert (said.readings[0].estimated_delivery, said.readings[0].signed_by) == ("2026-02-09", None)


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"errors": []}', b"<Fault/>", b"<getTrackingDataResponse/>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"[1]", b"<html/>"])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
