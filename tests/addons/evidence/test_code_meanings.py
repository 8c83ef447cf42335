"""A code has the meaning of its carrier's list, whatever the columns of the list are called."""

import pytest

from events.event import Raw
from statesvc.addons.evidence.code_meanings import code_meaning


@pytest.mark.parametrize(
    ("carrier_id", "raw", "meaning"),
    [
        ("sf_express", Raw(code="80"), "group of operation codes: delivered"),
        ("fedex", Raw(code="DL"), "Delivered"),
        ("fedex", Raw(code="DL", reason="??"), "Delivered"),
        ("canadapost", Raw(code="1496"), "Delivered"),
        (
            "dhl_parcel_de",
            Raw(type="STORN", code="", reason="ST"),
            "The previous event was deleted by driver: ICE Details (DD: Data Service)",
        ),
        (
            "amazon",
            Raw(code="ARRIVED"),
            "The ocean vessel or aircraft arrived at the destination port or airport.",
        ),
        ("fedex", Raw(code="no code of theirs"), None),
        ("canonical", Raw(code="80"), None),
    ],
)
def test_a_code_means_what_the_list_of_its_carrier_says(
    carrier_id: str, raw: Raw, meaning: str | None
) -> None:
    assert code_meaning(carrier_id, raw, "words of the carrier") == meaning
