from urllib.parse import quote_plus

import pytest

from events.carriers.carrier import Ack
from events.carriers.sf_express import CARRIER
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import FIXTURES, normalized, read, told


def test_one_push_holds_routes_of_several_waybills() -> None:
    said = normalized(CARRIER, "push.xml")

    assert told(said) == [
        ("444000000001", "50", "picked_up", "2026-03-02T14:36:36+08:00"),
        ("444000000002", "70/12", "delivery_attempted", "2026-03-02T15:36:36+08:00"),
        ("444000000002", "9999", "unmapped", "2026-03-02T16:36:36+08:00"),
    ]
    assert [(reading.native_id, reading.native_id_per_number) for reading in said.readings] == [("7", True), ("7", True), ("8", True)]


def test_a_push_in_a_form_field_says_the_same() -> None:
    xml = (FIXTURES / "sf_express" / "push.xml").read_bytes()
    assert read(CARRIER, f"content={quote_plus(xml)}&x=1".encode()) == read(CARRIER, xml)


def test_a_push_as_json_says_the_same() -> None:
    body = b'{"Body": {"WaybillRoute": {"id": 7, "mailno": "44", "acceptTime": "2026-03-02 14:36:36", "opCode": "31"}}}'
    assert told(read(CARRIER, body)) == [("44", "31", "in_transit", "2026-03-02T14:36:36+08:00")]


def test_an_answer_may_be_json_inside_json() -> None:
    assert told(normalized(CARRIER, "answer.json")) == [("SF1", "80", "delivered", "2026-03-02T14:36:36+08:00")]


@pytest.mark.parametrize("body", [b"{}", b'{"success": false, "errorCode": "S0001"}', b"<Response><Head>ERR</Head></Response>"])
def test_errors_are_empty(body: bytes) -> None:
    said = read(CARRIER, body)
    assert (said.readings, said.rejections) == ((), ())


@pytest.mark.parametrize("body", [b"1", b"[1]", b'{"hello": 1}', b"<html/>"])
def test_other_bodies_are_an_unknown_format(body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIER, body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_sf_takes_only_its_own_xml_for_a_yes() -> None:
    assert CARRIER.ack == Ack(content_type="text/xml", body=b'<Response service="RoutePushService"><Head>OK</Head></Response>')
