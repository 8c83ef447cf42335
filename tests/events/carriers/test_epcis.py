import pytest

from events.carriers.epcis import CARRIER
from events.errors import Cause, UnreadableMessageError
from events.identity import identify
from events.vocabulary import Reason, TzSource
from tests.events.carriers.carrier_fixtures import normalized, read, told

SHIPPING = "https://ref.gs1.org/cbv/BizStep-shipping/in_transit"


def test_an_event_is_told_of_each_thing_that_it_names() -> None:
    said = normalized(CARRIER, "document.json")

    assert told(said) == [
        ("urn:epc:id:sscc:0614141.1", SHIPPING, "in_transit", "2026-02-01T10:00:00.500000-06:00"),
        ("urn:epc:id:sscc:0614141.2", SHIPPING, "in_transit", "2026-02-01T10:00:00.500000-06:00"),
        ("urn:epc:id:sscc:0614141.1", SHIPPING, "correction", "2026-02-01T10:00:00.500000-06:00"),
        ("urn:epc:id:sscc:0614141.2", "receiving/in_progress", "delivered", "2026-02-03T10:00:00+01:00"),
        ("urn:epc:id:sscc:0614141.3", "storing/urn:epcglobal:cbv:disp:damaged", "exception", "2026-02-03T11:00:00+00:00"),
        ("urn:epc:id:sscc:0614141.3", "http://example.com/step/dancing/in_transit", "unmapped", "2026-02-03T12:00:00+00:00"),
        ("urn:epc:id:sscc:0614141.4", "packing", "info", "2026-02-03T13:00:00+00:00"),
        (None, "void_shipping", "correction", "2026-02-03T14:00:00+00:00"),
    ]
    assert said.readings[4].reason is Reason.DAMAGED
    assert said.readings[3].time.tz_source is TzSource.EXPLICIT
    assert [rejection.pointer for rejection in said.rejections] == ["/epcisBody/eventList/8", "/epcisBody/eventList/7"]


def test_an_error_declaration_takes_back_the_event_of_its_id() -> None:
    first, _, error, *_ = normalized(CARRIER, "document.json").readings
    ids = [identify(reading, carrier_id="epcis", digest=bytes).event_id for reading in (first, error)]
    assert ids == ["ev-1@URN:EPC:ID:SSCC:0614141.1", "ev-1#error@URN:EPC:ID:SSCC:0614141.1"]
    assert (first.corrects, error.corrects) == (None, ids[0])


def test_xml_says_the_same_also_in_extensions() -> None:
    said = normalized(CARRIER, "document.xml")

    assert [(number, what) for number, _, what, _ in told(said)] == [
        ("urn:epc:id:sscc:0614141.7", "in_transit"),
        ("urn:epc:id:sscc:0614141.8", "in_transit"),
        ("out-1", "correction"),
    ]
    assert said.readings[2].corrects == "ev-10@OUT1"


def test_a_single_event_may_stand_alone() -> None:
    said = read(CARRIER, b'{"type": "ObjectEvent", "eventTime": "2026-02-03T10:00:00Z", "epcList": ["a"], "bizStep": "accepting"}')
    assert told(said) == [("a", "accepting", "picked_up", "2026-02-03T10:00:00+00:00")]


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"type": "EPCISDocument", "epcisBody": {"eventList": []}}', b'{"title": "x", "status": 404}']
)
def test_documents_without_events_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b'{"hello": 1}', b"<html/>"])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT
