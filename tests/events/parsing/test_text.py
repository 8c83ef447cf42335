from typing import Any

import pytest

from events.event import NOWHERE, EventPlace
from events.parsing.lists import as_list, child, objects
from events.parsing.places import country_code, place
from events.parsing.rejections import Rejections
from events.parsing.text import signer, text, text_unless, without_markup
from events.parsing.zones import zone_of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
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
)
def test_text_is_taken_from_strings_and_integers_only(value: object, expected: str | None) -> None:
    assert text(value) == expected


def test_sentinels_of_a_carrier_are_no_text() -> None:
    assert text_unless("NULL", frozenset({"null"})) is None
    assert text_unless("Nullsen", frozenset({"null"})) == "Nullsen"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("EVANS", "EVANS"),
        ("..EVANS ", "EVANS"),
        ("D.HERRERA", "D.HERRERA"),
        ("Signature not  required", None),
        ("NSR", None),
        ("00:00:00", None),
        ("..", None),
        (None, None),
    ],
)
def test_a_signer_is_a_name_and_no_placeholder(printed: str | None, expected: str | None) -> None:
    assert signer(printed) == expected


def test_markup_is_taken_out_of_text() -> None:
    assert without_markup("Delivered<br/>to &eacute;tage&nbsp;2 ") == "Delivered to étage 2"
    assert without_markup("a < b") == "a < b"


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_nothing_in_its_five_spellings_is_an_empty_list(value: object) -> None:
    assert as_list(value) == []


def test_one_child_is_a_list_of_one() -> None:
    assert as_list({"a": 1}) == [{"a": 1}]


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


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("us", "US"),
        ("USA", "US"),
        ("United States", "US"),
        ("deu", "DE"),
        ("", None),
        ("Atlantis", "Atlantis"),
    ],
)
def test_a_country_is_its_code_of_two_letters(printed: str, code: str | None) -> None:
    assert country_code(printed) == code


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
