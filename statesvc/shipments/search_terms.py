"""Meanings of the text that a person searches with."""

from collections.abc import Iterator, Mapping
from typing import Final

PART_CHARS_MIN: Final = 4


def likely_searches(sought: str) -> Iterator[Mapping[str, str]]:
    """Yield parameters of `list_shipments`, the likeliest first: a whole number, a shipper's
    reference, how a number ends or begins.
    """
    yield {"tracking_number": sought}
    if "*" not in sought:
        yield {"reference": sought}
        if sum(map(str.isalnum, sought)) >= PART_CHARS_MIN:
            yield {"tracking_number": f"*{sought}"}
            yield {"tracking_number": f"{sought}*"}
