import pytest

from events.event import EventPlace
from events.parsing.lines import place_in_line


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Los Angeles, CA, US", EventPlace(city="Los Angeles", region="CA", country="US")),
        ("Columbus, OH", EventPlace(city="Columbus", region="OH", country="US")),
        ("Essen, DE", EventPlace(city="Essen", region="DE")),
        ("Rome, IT", EventPlace(city="Rome", country="IT")),
        ("NL", EventPlace(country="NL")),
        ("London, UK", EventPlace(city="London", country="GB")),
        ("SAN RAFAEL, CA 94901", EventPlace(city="SAN RAFAEL", region="CA", postal_code="94901", country="US")),
        ("Feltham, SRY", EventPlace(city="Feltham", region="SRY")),
        ("International Transit", EventPlace(city="International Transit")),
        (" , ", EventPlace()),
        (None, EventPlace()),
    ],
)
def test_a_line_is_taken_apart_only_as_far_as_it_is_clear(line: str | None, place: EventPlace) -> None:
    assert place_in_line(line) == place


def test_two_letters_are_what_the_carrier_or_its_country_says() -> None:
    assert place_in_line("Essen, DE", two_letters="country") == EventPlace(city="Essen", country="DE")
    assert place_in_line("San Francisco, CA", two_letters="state") == EventPlace(city="San Francisco", region="CA", country="US")
    assert place_in_line("Atlanta, GA", country="US") == EventPlace(city="Atlanta", region="GA", country="US")
    assert place_in_line("Sydney", country="AU") == EventPlace(city="Sydney", country="AU")
