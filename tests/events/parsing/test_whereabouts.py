import re
from importlib.resources import files
from typing import Any, Final

import pytest

from events.event import NOWHERE, EventPlace
from events.parsing.cities import bearers, spelled_city
from events.parsing.whereabouts import NO_JOURNEY, Journey, home_of, origin_of_item, zone_of_scan
from events.parsing.zones import rows_of, zone_at, zone_row
from events.vocabulary import Status

GERMANY_TO_BRITAIN: Final = Journey(
    EventPlace(city="Nürnberg", country="DE"), EventPlace(city="MENSTON", country="GB")
)
WITHIN_AMERICA: Final = Journey(
    EventPlace(city="Portland", region="OR", country="US"),
    EventPlace(city="Boston", region="MA", country="US"),
    status=Status.PICKED_UP,
)


CANADA: Final = EventPlace(country="CA")
PAMPLONA: Final = EventPlace(city="Pamplona", facility="PNA")


@pytest.mark.parametrize(
    ("place", "known", "expected"),
    [
        # where all that bear its name agree
        *(
            (EventPlace(city=city), {}, expected)
            for city, expected in [
                ("North Shields", "Europe/London"),
                ("NUERNBERG HUB", "Europe/Berlin"),
                ("Nürnberg", "Europe/Berlin"),
                ("Pune Sorting Center", "Asia/Kolkata"),
                ("LAS VEGAS NV DISTRIBUTION CENTER", "America/Los_Angeles"),
                ("ANN ARBOR, MI 48104", "America/Detroit"),
                ("Radefeld, Germany", "Europe/Berlin"),
                ("Rochefort (FR)", "Europe/Paris"),
                ("Bradford", None),
                ("Springfield", None),
                ("深圳市", "Asia/Shanghai"),
                ("القَاهِرَة", "Africa/Cairo"),
                ("الرياض", "Asia/Riyadh"),
                ("Thành phố Hồ Chí Minh", "Asia/Ho_Chi_Minh"),
                ("กรุงเทพมหานคร", "Asia/Bangkok"),
                ("Hub", None),
                ("KEASBEY, NJ", "America/New_York"),
                ("SAO PAULO, SP", "America/Sao_Paulo"),
                ("", None),
            ]
        ),
        # its country or region
        (EventPlace(city="Bradford", country="GB"), {}, "Europe/London"),
        (EventPlace(city="Springfield", region="OR"), {}, "America/Los_Angeles"),
        (EventPlace(city="Portland", region="OR", country="US"), {}, "America/Los_Angeles"),
        # where the shipment goes from and to
        (EventPlace(city="Bradford"), {"journey": GERMANY_TO_BRITAIN}, "Europe/London"),
        (EventPlace(city="Vancouver"), {"journey": Journey(CANADA, CANADA)}, "America/Vancouver"),
        # a carrier of one country
        (EventPlace(city="Hyderabad"), {"country": "IN"}, "Asia/Kolkata"),
        (EventPlace(city="Nuremberg"), {"country": "IN"}, None),
        # an airport, where the carrier's codes are such and its country fits
        (PAMPLONA, {}, None),
        (PAMPLONA, {"airports": True}, "Europe/Madrid"),
        (EventPlace(facility="LHR"), {"airports": True}, "Europe/London"),
        # NBE is an airport of Tunisia
        (EventPlace(city="Nuernberg", facility="NBE"), {"airports": True}, "Europe/Berlin"),
        (
            EventPlace(country="US", city="GATEWAY", facility="SEA"),
            {"airports": True},
            "America/Los_Angeles",
        ),
        (EventPlace(country="DE", facility="SEA"), {"airports": True}, "Europe/Berlin"),
    ],
)
def test_the_zone_of_a_scan_is_that_of_its_place(
    place: EventPlace, known: dict[str, Any], expected: str | None
) -> None:
    found = zone_of_scan(place, **{"journey": NO_JOURNEY, **known})
    assert (found and found.zone.key) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.INFO_RECEIVED, "America/Los_Angeles"),
        (Status.PICKED_UP, "America/Los_Angeles"),
        (Status.IN_TRANSIT, "America/Los_Angeles"),
        (Status.OUT_FOR_DELIVERY, "America/New_York"),
        (Status.DELIVERED, "America/New_York"),
        (Status.RETURNED, "America/Los_Angeles"),
    ],
)
@pytest.mark.parametrize("place", [NOWHERE, EventPlace(country="US")])
def test_origin_or_destination_stands_for_a_place_that_says_too_little(
    place: EventPlace, status: Status, expected: str
) -> None:
    found = zone_of_scan(place, WITHIN_AMERICA.at(status))
    assert found is not None
    assert (found.zone.key, found.of_shipment) == (expected, True)


def test_an_end_in_another_country_does_not_stand_for_a_place() -> None:
    found = zone_of_scan(EventPlace(country="AU"), WITHIN_AMERICA)
    assert found is not None
    assert (found.zone.key, found.certain, found.of_shipment) == ("Australia/Sydney", False, False)


def test_the_number_of_a_postal_item_names_the_country_of_its_post() -> None:
    assert origin_of_item("RA123456785GB") == EventPlace(country="GB")
    assert origin_of_item("RA123456784GB") == NOWHERE, "its check digit is wrong"
    assert origin_of_item("RA123456785XX") == NOWHERE
    assert origin_of_item(None) == NOWHERE


def test_the_home_of_a_carrier_is_found_in_any_spelling() -> None:
    assert {home_of(name) for name in ("royal-mail", "Royal Mail", "ROYALMAIL", "royal_mail")} == {
        "Europe/London"
    }
    assert home_of("nobody") is home_of(None) is None


def test_every_row_of_the_tables_is_of_use() -> None:
    assert [row for row in rows_of("couriers.csv") if home_of(row["name"]) != row["zone"]] == []
    assert [
        row for row in rows_of("regions.csv") if zone_row(row["country"], row["code"]) is None
    ] == []
    assert [row for row in rows_of("regions.csv") if spelled_city(row["name"]) != row["name"]] == []
    for row in rows_of("postal_zones.csv"):
        found = zone_at(row["country"], None, row["prefix"])
        assert (found and found.zone.key) == row["zone"], row


def test_every_name_of_the_table_of_cities_is_found() -> None:
    lines = files("events.parsing").joinpath("cities.csv").read_bytes().decode().splitlines()
    assert lines == sorted(lines, key=str.encode)
    for line in lines[:: len(lines) // 500]:
        name, _, printed = line.partition(",")
        assert [re.sub("[-=].*", "", one) for one in printed.split()] == [
            bearer.country for bearer in bearers(name)
        ], line
        assert zone_of_scan(EventPlace(city=name, country=bearers(name)[0].country)) is not None
