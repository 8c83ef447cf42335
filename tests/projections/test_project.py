import pytest

from events.vocabulary import Kind, Status
from projections.fact import Fact
from projections.fold import fold
from projections.project import notified_change
from tests.projections.parcel_story import enrichment, note, reread, scan

OUT = scan("out_for_delivery", "01 08:00")
DELIVERED = scan("delivered", "01 10:00", signer=b"\x01")
HELD = scan("exception", "01 07:00", reason="held")
AGAIN = (Status.DELIVERED, Status.DELIVERED)
REPORTED = (Status.EXCEPTION, Status.EXCEPTION)


@pytest.mark.parametrize(
    ("before", "message", "expected"),
    [
        pytest.param([], [OUT], (Status.UNKNOWN, Status.OUT_FOR_DELIVERY), id="first event"),
        pytest.param(
            [], [OUT, DELIVERED], (Status.UNKNOWN, Status.DELIVERED), id="a snapshot is one move"
        ),
        pytest.param(
            [], [note("01 08:00", name="u", kind=Kind.UNMAPPED)], None, id="only an unknown code"
        ),
        pytest.param([DELIVERED], [OUT], None, id="a late scan that changes nothing"),
        pytest.param([DELIVERED], [scan("exception", "02 10:00")], None, id="contradiction"),
        pytest.param(
            [OUT], [enrichment(OUT, name="e", eta="2026-03-09")], None, id="another estimate"
        ),
        pytest.param(
            [scan("delivered", "01 10:00")],
            [scan("delivered", "01 11:00", signer=b"\x01")],
            None,
            id="signer filled in",
        ),
        pytest.param(
            [DELIVERED],
            [scan("out_for_delivery", "02 08:00"), scan("delivered", "02 09:00")],
            AGAIN,
            id="delivered another time",
        ),
        pytest.param(
            [DELIVERED],
            [scan("delivered", "01 09:00")],
            AGAIN,
            id="was delivered earlier than reported",
        ),
        pytest.param(
            [HELD],
            [reread(HELD, name="r", status="exception", reason="weather")],
            REPORTED,
            id="correction of the reason",
        ),
        pytest.param(
            [OUT, DELIVERED],
            [reread(OUT, name="r", status=None)],
            None,
            id="correction without effect",
        ),
        pytest.param(
            [OUT, DELIVERED],
            [reread(DELIVERED, name="r", status=None)],
            (Status.DELIVERED, Status.OUT_FOR_DELIVERY),
            id="correction of the status",
        ),
    ],
)
def test_what_a_message_changes(
    before: list[Fact], message: list[Fact], expected: tuple[Status, Status] | None
) -> None:
    assert notified_change(fold(before), fold([*before, *message])) == expected
