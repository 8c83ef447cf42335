"""Rules for every carrier: its fixtures say what is expected, nothing else is taken for a scan, and
junk is no defect of ours.
"""

import contextlib
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import pytest

from events.carriers import CARRIERS
from events.carriers.carrier import (
    Ack,
    FormFieldMd5,
    Hmac,
    OAuthToken,
    RsaSha256,
    Sha256Concat,
    Sha256InBody,
    SharedHeader,
    SignedWebToken,
    TimestampedHmac,
    UrlToken,
)
from events.errors import Cause, UnreadableMessageError
from events.event import Normalized
from events.identity.ids import identify
from events.vocabulary import TzSource
from tests.events.carriers.bodies import SMALL, WITHOUT_SCANS, Small
from tests.events.carriers.carrier_fixtures import (
    RECEIVED_AT,
    described,
    expectations,
    fixture_paths,
    read,
    scans,
)
from tests.events.carriers.other_formats import OTHER_FORMATS

FIXTURES: Final = [
    pytest.param(carrier_id, path, id=f"{carrier_id}/{path.name}")
    for carrier_id in CARRIERS
    for path in fixture_paths(carrier_id)
]
JUNK: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    [],
    {},
    7,
    1.5,
    True,
    [None],
    [[]],
    {"a": [1]},
    "9" * 400,
)

AUTHENTICATION: Final[dict[str, tuple[object, ...]]] = {
    "17track": (Sha256Concat(header="sign"), Sha256InBody()),
    "clickpost": (SharedHeader(header="webhook_key"),),
    "dpd": (UrlToken(),),
    "easypost": (Hmac(header="X-Hmac-Signature", prefix="hmac-sha256-hex=", nfkd=True),),
    "easyship": (SignedWebToken(header="X-EASYSHIP-SIGNATURE"),),
    "fedex": (Hmac(header="fdx-signature", encoding="base64"), Hmac(header="fdx-signature")),
    "jtexpress": (FormFieldMd5(header="digest", field="bizContent"),),
    "karrio": (SharedHeader(header="X-Event-Id"),),
    "sendcloud": (Hmac(header="Sendcloud-Signature"),),
    "ship24": (SharedHeader(header="Authorization", prefix="Bearer "),),
    "shippo": (TimestampedHmac(header="Shippo-Auth-Signature"), UrlToken()),
    "teleship": (Hmac(header="x-teleship-signature"),),
    "ups": (SharedHeader(header="credential"), OAuthToken()),
}


def each(bodies: dict[str, tuple[bytes, ...]]) -> list[Any]:
    return [
        pytest.param(carrier_id, body, id=f"{carrier_id}-{number}")
        for carrier_id, several in bodies.items()
        for number, body in enumerate(several)
    ]


def nodes(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(found for key, child in children for found in nodes(child, (*path, key)))]


def replaced(value: Any, path: tuple[str | int, ...], junk: object) -> Any:
    if not path:
        return junk
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize(("carrier_id", "path"), FIXTURES)
def test_a_fixture_says_what_is_expected(carrier_id: str, path: Path) -> None:
    expected = expectations(carrier_id)[path.name]
    shows = expected.pop("shows", None)
    assert described(carrier_id, read(CARRIERS[carrier_id], path.read_bytes())) == expected, shows


def test_every_expectation_has_its_fixture() -> None:
    assert {carrier_id: list(expectations(carrier_id)) for carrier_id in CARRIERS} == {
        carrier_id: [path.name for path in fixture_paths(carrier_id)] for carrier_id in CARRIERS
    }


@pytest.mark.parametrize("small", SMALL, ids=lambda small: f"{small.carrier_id}: {small.shows}")
def test_a_small_body_says_what_is_expected(small: Small) -> None:
    normalized = read(CARRIERS[small.carrier_id], small.body)
    assert scans(normalized) == small.scans
    if small.rejected is not None:
        assert [rejection.pointer for rejection in normalized.rejections] == small.rejected
    for reading in normalized.readings:
        assert (reading.time.tz_source is TzSource.RECEIVED) == (
            reading.time.instant == RECEIVED_AT
        )
        assert reading.native_id is None or small.carrier_id == "sf_express"


@pytest.mark.parametrize(("carrier_id", "body"), each(WITHOUT_SCANS))
def test_errors_notices_and_empty_answers_hold_nothing(carrier_id: str, body: bytes) -> None:
    assert read(CARRIERS[carrier_id], body) == Normalized()


@pytest.mark.parametrize(("carrier_id", "body"), each(OTHER_FORMATS))
def test_another_format_is_refused(carrier_id: str, body: bytes) -> None:
    with pytest.raises(UnreadableMessageError) as caught:
        read(CARRIERS[carrier_id], body)
    assert caught.value.cause is Cause.UNKNOWN_FORMAT


def test_every_carrier_has_bodies_without_scans_and_of_other_formats() -> None:
    assert WITHOUT_SCANS.keys() == OTHER_FORMATS.keys() == CARRIERS.keys() - {"canonical"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("carrier_id", "path"), [case for case in FIXTURES if str(case.values[1]).endswith(".json")]
)
def test_junk_in_any_place_of_a_body_is_no_defect_of_ours(carrier_id: str, path: Path) -> None:
    value = json.loads(path.read_bytes())
    for place in nodes(value):
        for junk in JUNK:
            with contextlib.suppress(UnreadableMessageError):
                normalized = read(
                    CARRIERS[carrier_id], json.dumps(replaced(value, place, junk)).encode()
                )
                for reading in normalized.readings:
                    identify(reading, carrier_id=carrier_id, digest=bytes, allow_unnumbered=True)


@pytest.mark.parametrize("carrier_id", AUTHENTICATION)
def test_a_carrier_signs_as_it_documents(carrier_id: str) -> None:
    assert CARRIERS[carrier_id].schemes() == AUTHENTICATION[carrier_id]


def test_what_the_shipper_chose_stands_in_the_place_of_the_choice() -> None:
    chosen = (SharedHeader(header="X-Api-Key"),)
    assert CARRIERS["sendcloud"].schemes(chosen) == (Hmac(header="Sendcloud-Signature"), *chosen)
    assert CARRIERS["dpd"].schemes(chosen) == chosen
    assert CARRIERS["fedex"].schemes(chosen) == CARRIERS["fedex"].schemes()
    assert not CARRIERS["fedex"].leaves_choice


def test_shipengines_public_key_is_never_taken_for_a_token() -> None:
    assert [type(scheme) for scheme in CARRIERS["shipengine"].authentication] == [RsaSha256]


def test_ups_takes_only_200_for_a_yes_and_sf_only_its_own_xml() -> None:
    assert CARRIERS["ups"].ack.status == 200
    assert CARRIERS["sf_express"].ack == Ack(
        content_type="text/xml",
        body=b'<Response service="RoutePushService"><Head>OK</Head></Response>',
    )


def test_a_push_of_sf_in_a_form_field_says_the_same() -> None:
    xml = next(path for path in fixture_paths("sf_express") if path.name == "push.xml").read_bytes()
    carrier = CARRIERS["sf_express"]
    assert read(carrier, f"content={quote_plus(xml)}&x=1".encode()) == read(carrier, xml)
