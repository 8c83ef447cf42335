import pytest

from events.event import EventPlace
from events.parsing.lines import position_in_line, reported_place


@pytest.mark.parametrize(
    ("line", "place"),
    [
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
)
def test_a_line_is_taken_apart_only_as_far_as_it_is_clear(
    line: str | None, place: EventPlace
) -> None:
    assert position_in_line(line) == place


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
