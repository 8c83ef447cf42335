"""Corrections of our own and of carriers: what they take back or read again, whatever came first."""

from dataclasses import replace
from itertools import permutations

import pytest

from events.vocabulary import Kind, Reason
from projections.fact import Fact
from projections.fold import fold
from projections.lifecycle import Flag
from tests.projections.parcel_story import at, enrichment, note, reread, retraction, scan

SIGNER = b"\x07"
LABEL = scan("info_received", "01 08:00", code="MP")
PICKUP = scan("picked_up", "01 10:00", code="PU")
ARRIVAL = scan("in_transit", "02 10:00", code="AR")
ESTIMATED = scan("in_transit", "02 10:00", eta="2026-03-05")
LATER_ESTIMATE = enrichment(ARRIVAL, name="e", eta="2026-03-06")
OUT = scan("out_for_delivery", "03 08:00")
DELIVERED = scan("delivered", "03 10:00", signer=SIGNER)
TODAY = scan("delivered", "03")
UNMAPPED = note("02 18:00", name="u", kind=Kind.UNMAPPED)
UNMAPPED_DAY = note("03", name="u", kind=Kind.UNMAPPED)
UNMAPPED_DELIVERY = note("03 10:00", name="u", kind=Kind.UNMAPPED)

VOID = retraction("02 12:00", name="vp", code="VP", carrier="ups")
STORN = retraction("03 10:05", name="storn", code="STORN")
STORN_AGAIN = retraction("03 10:06", name="again")
STORN_OF_DELIVERY = retraction("03 10:05", name="b", target=DELIVERED.event_id)
ATTEMPTED = retraction("03 10:05", name="a", status="delivery_attempted")
MAPPED = reread(UNMAPPED, name="m", status="exception", reason="weather")
MAPPED_AND_SIGNED = replace(
    reread(UNMAPPED_DELIVERY, name="m", status="delivered"), signer_digest=SIGNER
)
FIRST = reread(ARRIVAL, name="z", status="exception", reason="held")
SECOND = reread(ARRIVAL, name="y", status=None, replaces=FIRST)
THIRD = reread(ARRIVAL, name="x", status="available_for_pickup", replaces=SECOND)
OF_FIRST = reread(FIRST, name="y", status="available_for_pickup")
CONTRADICTED = {Flag.CONTRADICTED}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            [LABEL, PICKUP, VOID], {"status": "info_received"}, id="a void pickup takes it back"
        ),
        pytest.param(
            [LABEL, PICKUP, ARRIVAL, VOID],
            {"status": "in_transit", "status_since": ARRIVAL.instant, "flags": set()},
            id="and nothing else",
        ),
        pytest.param(
            [LABEL, ARRIVAL, retraction("02 12:00", name="cd", code="CD", carrier="ups")],
            {"status": "in_transit", "flags": CONTRADICTED},
            id="its family was never scanned",
        ),
        pytest.param(
            [STORN, DELIVERED, OUT, ARRIVAL],
            {
                "status": "out_for_delivery",
                "delivered_at": None,
                "signed_by_event_id": None,
                "flags": set(),
            },
            id="without a target it takes back the event before it",
        ),
        pytest.param(
            [OUT, DELIVERED, retraction("03 10:00", name="storn")],
            {"status": "out_for_delivery"},
            id="at the instant of its event",
        ),
        pytest.param(
            [OUT, TODAY, retraction("03", name="storn")],
            {"status": "out_for_delivery"},
            id="on the day of its event",
        ),
        pytest.param(
            [ARRIVAL, OUT, DELIVERED, STORN, STORN_AGAIN],
            {"status": "in_transit"},
            id="each takes back one more",
        ),
        pytest.param([OUT, STORN], {"status": "unknown"}, id="before its scan has come"),
        pytest.param(
            [OUT, STORN, DELIVERED], {"status": "out_for_delivery"}, id="after its scan has come"
        ),
        pytest.param(
            [retraction("01 07:00", name="storn"), OUT],
            {"flags": CONTRADICTED},
            id="it finds nothing",
        ),
        pytest.param(
            [OUT, DELIVERED, retraction("01 10:00", name="x", target=DELIVERED.event_id)],
            {"status": "out_for_delivery"},
            id="it may name a later event",
        ),
        pytest.param(
            [OUT, retraction("03 12:00", name="x", target=DELIVERED.event_id)],
            {
                "status": "out_for_delivery",
                "pending": {DELIVERED.event_id},
                "flags": CONTRADICTED,
            },
            id="a named event that has not come is awaited",
        ),
        pytest.param(
            [ARRIVAL, UNMAPPED, MAPPED],
            {"status": "exception", "reason": Reason.WEATHER, "status_since": at("02 18:00")},
            id="with a status it reads the event again at its old time",
        ),
        pytest.param(
            [ARRIVAL, UNMAPPED, MAPPED, OUT],
            {"status": "out_for_delivery"},
            id="before what came later",
        ),
        pytest.param(
            [OUT, UNMAPPED_DAY, reread(UNMAPPED_DAY, name="m", status="delivered")],
            {"status": "delivered"},
            id="a day-long event is sorted by its new reading",
        ),
        pytest.param([PICKUP, ARRIVAL, FIRST], {"status": "exception"}, id="a chain of one"),
        pytest.param([PICKUP, ARRIVAL, FIRST, SECOND], {"status": "picked_up"}, id="of two"),
        pytest.param(
            [PICKUP, ARRIVAL, THIRD, FIRST, SECOND],
            {"status": "available_for_pickup"},
            id="of three",
        ),
        pytest.param(
            [PICKUP, ARRIVAL, FIRST, OF_FIRST],
            {"status": "available_for_pickup"},
            id="found by what each link corrects",
        ),
        pytest.param(
            [OUT, UNMAPPED_DELIVERY, MAPPED_AND_SIGNED],
            {"signed_by_event_id": MAPPED_AND_SIGNED.event_id},
            id="the end of a chain may bring the signer",
        ),
        pytest.param(
            [
                OUT,
                DELIVERED,
                STORN_OF_DELIVERY,
                reread(DELIVERED, name="r", status="delivered"),
            ],
            {"status": "out_for_delivery"},
            id="a carrier's retraction outlasts our reading",
        ),
        pytest.param(
            [OUT, DELIVERED, STORN, reread(STORN, name="r", status=None)],
            {"status": "delivered"},
            id="a misread retraction is taken back",
        ),
        pytest.param(
            [OUT, DELIVERED, STORN_OF_DELIVERY, retraction("03 10:06", name="c", target="b")],
            {"status": "delivered"},
            id="a later retraction takes back a retraction",
        ),
        pytest.param(
            [OUT, DELIVERED, STORN_OF_DELIVERY, retraction("03 10:04", name="a", target="b")],
            {"status": "out_for_delivery", "flags": CONTRADICTED},
            id="an earlier one does not",
        ),
        pytest.param(
            [retraction("04 10:00", name="a", target="a")],
            {"flags": CONTRADICTED},
            id="none takes back itself",
        ),
        pytest.param(
            [
                OUT,
                DELIVERED,
                retraction("03 11:00", name="a", target=DELIVERED.event_id),
                retraction(
                    "03 12:00", name="b", target=DELIVERED.event_id, status="delivery_attempted"
                ),
            ],
            {"status": "delivery_attempted"},
            id="of two corrections the later counts",
        ),
        pytest.param(
            [OUT, DELIVERED, ATTEMPTED], {"status": "delivery_attempted"}, id="read again"
        ),
        pytest.param(
            [OUT, DELIVERED, ATTEMPTED, STORN_AGAIN],
            {"status": "out_for_delivery"},
            id="and taken back",
        ),
        pytest.param(
            [ESTIMATED, reread(ESTIMATED, name="r", status=None)],
            {"estimated_delivery": "2026-03-05"},
            id="an estimate outlives its scan",
        ),
        pytest.param(
            [ARRIVAL, LATER_ESTIMATE, reread(LATER_ESTIMATE, name="r", status=None)],
            {"estimated_delivery": None},
            id="and not its own retraction",
        ),
        *(
            pytest.param([OUT, *chased], {"status": "out_for_delivery"}, id=f"a circle of {name}")
            for name, chased in {
                "two retractions": [
                    retraction("04 10:00", name="a", target="b"),
                    retraction("04 10:00", name="b", target="a"),
                ],
                "one retraction": [retraction("04 10:00", name="a", target="a")],
                "two readings": [
                    reread(retraction("04 10:00", name="c1-b"), name="a", status="lost"),
                    reread(retraction("04 10:00", name="c1-a"), name="b", status="lost"),
                ],
                "one reading": [
                    reread(retraction("04 10:00", name="c1-a"), name="a", status="lost")
                ],
            }.items()
        ),
    ],
)
def test_a_correction_counts_whatever_came_first(
    given: list[Fact], expected: dict[str, object]
) -> None:
    for arrival in permutations(given):
        state = fold(arrival)
        assert {name: getattr(state, name) for name in expected} == expected
