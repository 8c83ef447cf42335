import pytest

from events.carriers.carrier import Sha256Concat, Sha256InBody, UrlToken
from events.carriers.seventeentrack import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told


def test_the_events_of_all_providers_are_read_by_sub_status_then_stage() -> None:
    said = normalized(CARRIER, "push_two_providers.json")

    assert told(said) == [
        ("RB000000017SG", "InTransit_CustomsRequiringInformation", "exception", "2026-03-04T08:10:00-03:00"),
        ("RB000000017SG", "InTransit_BrandNew", "in_transit", "2026-03-02T10:00:00+08:00"),
        ("RB000000017SG", "PickedUp", "picked_up", "2026-03-01T09:00:00+08:00"),
    ]
    assert [rejection.pointer for rejection in said.rejections] == ["/data/track_info/tracking/providers/0/events/1"]


def test_an_undocumented_sub_status_is_read_by_its_category() -> None:
    said = normalized(CARRIER, "push_two_providers.json")
    assert [reading.by_category for reading in said.readings] == [False, True, False]
    assert said.readings[0].reason is Reason.CUSTOMS_DOCUMENTS


def test_the_newest_event_takes_its_zone_from_its_address_and_bears_the_estimate() -> None:
    newest = normalized(CARRIER, "push_two_providers.json").readings[0]

    assert newest.time.tz_source is TzSource.LOCATION
    assert (newest.place.city, newest.place.country) == ("Sao Paulo", None)
    assert newest.estimated_delivery == "2026-03-11"


def test_a_status_without_events_speaks_only_where_it_says_something() -> None:
    said = normalized(CARRIER, "answer_accepted_and_rejected.json")
    assert told(said) == [("RB1", "InfoReceived", "info_received", "2026-11-21T12:00:00+00:00")]


def test_v1_tells_the_code_of_the_package_of_its_newest_event_only() -> None:
    said = normalized(CARRIER, "push_v1.json")

    assert told(said) == [
        ("9400000000000000000017", "e=40", "delivered", "2026-02-03T11:45:00+00:00"),
        ("9400000000000000000017", None, "info", "2026-02-02T06:01:00+00:00"),
        ("9400000000000000000017", None, "info_received", "2026-11-21T12:00:00+00:00"),
    ]
    assert said.readings[2].time.tz_source is TzSource.RECEIVED


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"event": "TRACKING_STOPPED", "data": {"number": "1", "carrier": 2}}', b'{"code": -18010002, "data": {"errors": []}}'],
)
def test_notices_and_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"[1]", b'{"hello": 1}', b"7"])
def test_other_json_is_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_the_signature_is_a_plain_hash() -> None:
    assert CARRIER.authentication == (Sha256Concat(header="sign"), Sha256InBody(), UrlToken())
