"""The finest known one of a carrier's fields says what a scan means."""

import pytest

from events.parsing.meanings import UNMAPPED, Meaning, finest
from events.vocabulary import Kind, Status

MOVING = Meaning(Kind.SCAN, Status.IN_TRANSIT)
ON_VEHICLE = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)


@pytest.mark.parametrize(
    ("levels", "meaning"),
    [
        ((("OFD", ON_VEHICLE), ("transit", MOVING)), ON_VEHICLE),
        ((("NEW", None), ("transit", MOVING)), MOVING.of_category()),
        ((("NEW", UNMAPPED), ("transit", MOVING)), MOVING.of_category()),
        (((None, None), ("transit", MOVING)), MOVING),
        (((None, ON_VEHICLE), ("transit", MOVING)), MOVING),
        ((("NEW", None), ("NEWER", None), ("transit", MOVING)), MOVING.of_category()),
        ((("NEW", None), ("OFD", ON_VEHICLE), ("transit", MOVING)), ON_VEHICLE.of_category()),
        ((("NEW", None), ("other", None)), UNMAPPED),
        ((), UNMAPPED),
    ],
)
def test_a_category_is_believed_only_where_every_finer_field_is_unknown(
    levels: tuple[tuple[str | None, Meaning | None], ...], meaning: Meaning
) -> None:
    assert finest(*levels) == meaning
