import pytest

from events.event import Place
from events.parsing.lines import place_in_line


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Los Angeles, CA, US", Place(city="Los Angeles", region="CA", country="US")),
        ("Columbus, OH", Place(city="Columbus", region="OH", country="US")),
        ("Essen, DE", Place(city="Essen", region="DE")),
        ("Rome, IT", Place(city="Rome", country="IT")),
        ("NL", Place(country="NL")),
        ("London, UK", Place(city="London", country="GB")),
        ("SAN RAFAEL, CA 94901", Place(city="SAN RAFAEL", region="CA", postal_code="94901", country="US")),
        ("Feltham, SRY", Place(city="Feltham", region="SRY")),
        ("International Transit", Place(city="International Transit")),
        (" , ", Place()),
        (None, Place()),
    ],
)
def test_a_line_is_taken_apart_only_as_far_as_it_is_clear(line: str | None, place: Place) -> None:
    assert place_in_line(line) == place


def test_two_letters_are_what_the_carrier_or_its_country_says() -> None:
    assert place_in_line("Essen, DE", two_letters="country") == Place(city="Essen", country="DE")
    assert place_in_line("San Francisco, CA", two_letters="state") == Place(city="San Francisco", region="CA", country="US")
    assert place_in_line("Atlanta, GA", country="US") == Place(city="Atlanta", region="GA", country="US")
    assert place_in_line("Sydney", country="AU") == Place(city="Sydney", country="AU")
