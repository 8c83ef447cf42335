"""Texts of carriers: cleaned, cut into lines, forms and service names."""

from collections.abc import Callable
from typing import Any

import pytest

from events.event import NOWHERE, EventPlace
from events.parsing.forms import FIELDS_MAX, form_fields
from events.parsing.lines import position_in_line, reported_place
from events.parsing.lists import as_list, child, objects
from events.parsing.places import country_code, place
from events.parsing.rejections import Rejections
from events.parsing.service_name import SERVICE_CHARACTERS_MAX, service_key, service_name
from events.parsing.text import signer, text, text_unless, without_markup
from events.parsing.zones import zone_of

READ: dict[Callable[[Any], Any], list[tuple[Any, Any]]] = {
    text: [
        (" a ", "a"),
        ("", None),
        (" \u00a0", None),
        (94001, "94001"),
        (True, None),
        (1.5, None),
        (None, None),
        ([], None),
        ({"a": 1}, None),
    ],
    signer: [
        ("EVANS", "EVANS"),
        ("..EVANS ", "EVANS"),
        ("D.HERRERA", "D.HERRERA"),
        ("Signature not  required", None),
        ("NSR", None),
        ("00:00:00", None),
        ("..", None),
        (None, None),
    ],
    country_code: [
        ("us", "US"),
        ("USA", "US"),
        ("United States", "US"),
        ("deu", "DE"),
        ("", None),
        ("Atlantis", "Atlantis"),
    ],
    position_in_line: [
        ("Los Angeles, CA, US", EventPlace(city="Los Angeles", region="CA", country="US")),
        ("Columbus, OH", EventPlace(city="Columbus", region="OH", country="US")),
        ("Essen, DE", EventPlace(city="Essen", region="DE")),
        ("Rome, IT", EventPlace(city="Rome", country="IT")),
        ("NL", EventPlace(country="NL")),
        ("London, UK", EventPlace(city="London", country="GB")),
        (
            "SAN RAFAEL, CA 94901",
            EventPlace(city="SAN RAFAEL", region="CA", postal_code="94901", country="US"),
        ),
        ("Feltham, SRY", EventPlace(city="Feltham", region="SRY")),
        ("International Transit", EventPlace(city="International Transit")),
        (" , ", EventPlace()),
        (None, EventPlace()),
    ],
    form_fields: [
        (b"a=1&b=x+y%26z", {b"a": b"1", b"b": b"x y&z"}),
        (b"a=1&a=2", {b"a": b"1"}),
        (b"a", {}),
        (b"", {}),
        (b'{"a": "b=1"}', {}),
        (b"<a b='1'/>", {}),
        (b"a=%zz&b", {b"a": b"%zz"}),
    ],
    service_name: [
        *(
            (printed, None)
            for printed in [
                None,
                "",
                " ",
                "null",
                "N/A",
                "string",
                "UNKNOWN - Product unknown",
                "x" * (SERVICE_CHARACTERS_MAX + 1),
                " " * 1_000_000 + "x",
                "P. Sample, p@example.com",
                "call +49 (170) 123-4567",
                "a\x00b",
            ]
        ),
        ("UPS Ground", "UPS Ground"),
        ("  UPS \u00a0 Ground\u00ae ", "UPS Ground"),
        ("FEDEX_2_DAY", "FEDEX_2_DAY"),
        ("USPS Ground Advantage \u2122", "USPS Ground Advantage"),
        (
            "DHL Express Worldwide 0-1kg - incoterm DAP",
            "DHL Express Worldwide 0-1kg - incoterm DAP",
        ),
        ("003089", "003089"),
        ("N", "N"),
    ],
    as_list: [(None, []), ("", []), ([], []), ({}, []), ({"a": 1}, [{"a": 1}])],
    without_markup: [
        ("Delivered<br/>to &eacute;tage&nbsp;2 ", "Delivered to étage 2"),
        ("a < b", "a < b"),
    ],
    service_key: [
        ("UPS  ground", "ups ground"),
        ("\uff35\uff30\uff33 GROUND", "ups ground"),
        (None, None),
    ],
}


@pytest.mark.parametrize(
    ("read", "printed", "expected"),
    [(read, *case) for read, cases in READ.items() for case in cases],
)
def test_what_is_printed_is_read(
    read: Callable[[Any], Any], printed: object, expected: object
) -> None:
    assert read(printed) == expected


def test_sentinels_of_a_carrier_are_no_text() -> None:
    assert text_unless("NULL", frozenset({"null"})) is None
    assert text_unless("Nullsen", frozenset({"null"})) == "Nullsen"


def test_members_that_are_no_objects_are_reported_with_their_place() -> None:
    rejections = Rejections()
    assert objects([None, {"a": 1}, "x"], "/events", rejections) == [(1, {"a": 1})]
    assert [rejection.pointer for rejection in rejections] == ["/events/0", "/events/2"]


@pytest.mark.parametrize("value", [{"a": {"b": {"c": 1}}}, {"a": [{"b": {"c": 1}}]}])
def test_a_child_is_found_through_objects_and_lists_of_one(value: dict[str, Any]) -> None:
    assert child(value, "a", "b") == {"c": 1}


@pytest.mark.parametrize("value", [{}, {"a": None}, {"a": "x"}, {"a": [{"b": {}}, {"b": {}}]}])
def test_an_absent_child_is_empty(value: dict[str, Any]) -> None:
    assert child(value, "a", "b") == {}


def test_a_place_of_nothing_is_nowhere() -> None:
    assert place(city=" ", region=None, country="") is NOWHERE


@pytest.mark.parametrize(
    ("found", "zone"),
    [
        (EventPlace(country="DE"), "Europe/Berlin"),
        (EventPlace(country="ES", postal_code="35001"), "Atlantic/Canary"),
        (EventPlace(country="US", region="KY", postal_code="42101"), "America/Chicago"),
        (EventPlace(country="BR", region="AM"), "America/Manaus"),
        (EventPlace(country="RU", region="NVS"), "Asia/Novosibirsk"),
        (EventPlace(country="MX", region="BCN"), "America/Tijuana"),
        (EventPlace(country="ES", region="Islas Canarias"), "Atlantic/Canary"),
        (EventPlace(country="FR", postal_code="97400"), "Indian/Reunion"),
        (EventPlace(country="US", postal_code="90066"), "America/Los_Angeles"),
        (
            EventPlace(country="CA", region="British Columbia", city="Vancouver"),
            "America/Vancouver",
        ),
        (EventPlace(country="ID", region="Bali"), "Asia/Makassar"),
        (EventPlace(country="PT", city="Ponta Delgada"), "Atlantic/Azores"),
        (EventPlace(country="NZ", city="Waitangi", postal_code="8942"), "Pacific/Auckland"),
        (EventPlace(country="XX"), None),
        (NOWHERE, None),
    ],
)
def test_the_zone_of_a_place_is_known_within_its_country(
    found: EventPlace, zone: str | None
) -> None:
    known = zone_of(found)
    assert (known and known.zone.key) == zone


def test_two_letters_are_what_the_carrier_or_its_country_says() -> None:
    assert position_in_line("Essen, DE", two_letters="country") == EventPlace(
        city="Essen", country="DE"
    )
    assert position_in_line("San Francisco, CA", two_letters="state") == EventPlace(
        city="San Francisco", region="CA", country="US"
    )
    assert position_in_line("Atlanta, GA", country="US") == EventPlace(
        city="Atlanta", region="GA", country="US"
    )
    assert position_in_line("Sydney", country="AU") == EventPlace(city="Sydney", country="AU")


@pytest.mark.parametrize(
    ("line", "of_shipment", "place"),
    [
        ("CHICAGO, IL", (), EventPlace(city="CHICAGO", region="IL", country="US")),
        ("ATLANTA, GA", ("CN", None), EventPlace(city="ATLANTA", region="GA", country="US")),
        ("Wilmington, DE", (), EventPlace(city="Wilmington", region="DE", country="US")),
        ("Essen, DE", (), EventPlace(city="Essen", country="DE")),
        ("HAIFA, IL", (), EventPlace(city="HAIFA", country="IL")),
        ("Sorting center, IL", (), EventPlace(city="Sorting center", region="IL", country="US")),
        ("Sorting center, IL", ("CN", "IL"), EventPlace(city="Sorting center", country="IL")),
        ("CURITIBA, PR", (), EventPlace(city="CURITIBA", region="PR", country="BR")),
        ("VANCOUVER, BC", (), EventPlace(city="VANCOUVER", region="BC", country="CA")),
        (
            "RENTON, WA 98056",
            (),
            EventPlace(city="RENTON", region="WA", postal_code="98056", country="US"),
        ),
        ("CHICAGO IL", (), EventPlace(city="CHICAGO", region="IL", country="US")),
        (
            "BOCA RATON, FL, 33487, USA, United States",
            (),
            EventPlace(city="BOCA RATON", region="FL", postal_code="33487", country="US"),
        ),
        ("LEIPZIG - GERMANY", (), EventPlace(city="LEIPZIG", country="DE")),
        ("SUZHOU & SURROUNDING AREA - CHINA MAINLAND", (), EventPlace(city="SUZHOU", country="CN")),
        ("HONG KONG - HONG KONG SAR, CHINA", (), EventPlace(city="HONG KONG", country="HK")),
        ("Singapore", (), EventPlace(city="Singapore", country="SG")),
        ("United States", (), EventPlace(country="US")),
        ("null", (), EventPlace()),
    ],
)
def test_a_line_that_an_aggregator_repeats_is_a_state_before_it_is_a_country(
    line: str, of_shipment: tuple[str | None, ...], place: EventPlace
) -> None:
    assert reported_place(line, of_shipment=of_shipment) == place


def test_fields_of_an_aggregator_go_before_its_line_and_a_city_alone_is_a_line() -> None:
    assert reported_place("RENO, NV", city="Reno", region="NV", country="USA") == EventPlace(
        city="Reno", region="NV", country="US"
    )
    assert reported_place("LYON, FR", country="France") == EventPlace(city="LYON", country="FR")
    assert reported_place(city="Chicago, IL", region="null", country="null") == EventPlace(
        city="Chicago", region="IL", country="US"
    )
    assert reported_place(city="null") == EventPlace()


def test_the_fields_of_a_form_are_bounded() -> None:
    assert (
        len(form_fields(b"&".join(b"f%d=1" % number for number in range(FIELDS_MAX * 100))))
        == FIELDS_MAX
    )
