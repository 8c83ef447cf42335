"""A carrier_id that is none is answered with those that it may have been meant for."""

import pytest

from events.carriers import CARRIERS
from statesvc.http.unknown_carrier import no_such_carrier


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("UPS", "`ups`"),
        ("usp", "`usps`"),
        ("Royal Mail", ""),
        ("dhl-express", "`dhl_express`"),
        ("fed", "`fedex`"),
    ],
)
def test_the_carrier_that_was_meant_is_named(written: str, meant: str) -> None:
    assert meant in no_such_carrier(written, CARRIERS)


def test_all_of_a_group_are_named() -> None:
    assert no_such_carrier("dhl", CARRIERS).startswith(
        "no such carrier_id: did you mean `dhl_ecommerce` or `dhl_express` or"
    )


def test_nothing_is_guessed_of_what_resembles_nothing() -> None:
    assert (
        no_such_carrier("zzzzzz", CARRIERS) == "no such carrier_id; `statesvc carriers` lists them"
    )
