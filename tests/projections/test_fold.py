"""Given these events, whatever came first, the shipment is that."""

from dataclasses import replace
from itertools import permutations

import pytest

from events.vocabulary import Kind, Reason, Status
from projections.fact import Fact
from projections.fold import advance, fold
from projections.lifecycle import Flag
from projections.state import INITIAL
from tests.projections.parcel_story import at, enrichment, note, scan

GREGOIRE, HETU = b"\x01", b"\x02"

OUT = scan("out_for_delivery", "01 08:00")
DELIVERED = scan("delivered", "01 10:00")


def test_no_events_are_the_initial_state() -> None:
    assert fold([]) == INITIAL


@pytest.mark.parametrize(
    ("given", "status", "flags"),
    [
        pytest.param(
            [scan("info_received", "01 10:09"), scan("picked_up", "01 10:00")],
            "picked_up",
            {"backward"},
            id="label after pickup",
        ),
        pytest.param(
            [scan("picked_up", "01"), scan("info_received", "01 19:09")],
            "picked_up",
            {"backward"},
            id="FedEx OC after a date-only PU",
        ),
        pytest.param(
            [scan("in_transit", "01 10:00"), scan("picked_up", "02 10:00")],
            "picked_up",
            {"backward"},
            id="picked up again",
        ),
        pytest.param(
            [OUT, DELIVERED, note("04 09:00", name="refund")],
            "delivered",
            set(),
            id="UPS refund after delivery",
        ),
        pytest.param(
            [OUT, DELIVERED, scan("exception", "02 09:00")],
            "delivered",
            {"contradicted"},
            id="exception after delivery",
        ),
        pytest.param(
            [DELIVERED, scan("out_for_delivery", "02 09:00")],
            "delivered",
            {"contradicted"},
            id="out again, not yet delivered",
        ),
        pytest.param(
            [DELIVERED, scan("in_transit", "01 17:54")],
            "delivered",
            {"contradicted"},
            id="clocks of two countries",
        ),
        pytest.param(
            [DELIVERED, scan("info_received", "02 09:00")],
            "delivered",
            {"backward"},
            id="label after delivery",
        ),
        pytest.param(
            [DELIVERED, scan("returning", "02 09:00")],
            "returning",
            set(),
            id="returned by the consignee",
        ),
        pytest.param(
            [DELIVERED, scan("returned", "02 09:00")],
            "returned",
            set(),
            id="returned without a scan",
        ),
        pytest.param([scan("cancelled", "01 09:00")], "cancelled", set(), id="cancelled"),
        pytest.param(
            [scan("info_received", "01 08:00"), scan("cancelled", "01 09:00")],
            "cancelled",
            set(),
            id="label voided",
        ),
        pytest.param(
            [OUT, scan("cancelled", "01 09:00")],
            "out_for_delivery",
            {"contradicted"},
            id="cancelled on the road",
        ),
        pytest.param(
            [scan("cancelled", "01 08:00"), scan("picked_up", "01 09:00")],
            "picked_up",
            {"reopened"},
            id="cancel disproved",
        ),
        pytest.param(
            [scan("cancelled", "01 08:00"), scan("info_received", "01 09:00")],
            "cancelled",
            {"backward"},
            id="label is no proof",
        ),
        pytest.param(
            [scan("lost", "01 08:00"), scan("in_transit", "01 09:00")],
            "in_transit",
            {"reopened"},
            id="found again",
        ),
        pytest.param(
            [scan("lost", "01 08:00"), DELIVERED], "delivered", {"reopened"}, id="found at the door"
        ),
        pytest.param(
            [scan("destroyed", "01 08:00"), DELIVERED],
            "destroyed",
            {"contradicted"},
            id="destroyed is final",
        ),
        pytest.param(
            [scan("returned", "01 08:00"), scan("in_transit", "01 09:00")],
            "returned",
            {"contradicted"},
            id="returned is final",
        ),
        pytest.param(
            [scan("returning", "01 08:00"), scan("out_for_delivery", "01 09:00")],
            "returning",
            set(),
            id="the way back has scans",
        ),
        pytest.param(
            [scan("returning", "01 08:00"), DELIVERED],
            "delivered",
            {"delivered_while_returning"},
            id="delivered, but to whom?",
        ),
        pytest.param(
            [scan("returning", "01 08:00"), scan("returned", "02 09:00")],
            "returned",
            set(),
            id="return leg",
        ),
        pytest.param(
            [note("01 08:00", name="u", kind=Kind.UNMAPPED)],
            "unknown",
            set(),
            id="a code that nobody knows",
        ),
    ],
)
def test_status_and_flags_do_not_depend_on_the_order_of_arrival(
    given: list[Fact], status: str, flags: set[str]
) -> None:
    for arrival in permutations(given):
        state = fold(arrival)
        assert state.status == Status(status)
        assert state.flags == flags


SIGNED = scan("delivered", "01 10:15", signer=GREGOIRE)
SIGNED_AGAIN = scan("delivered", "03 11:40", signer=HETU)
BETWEEN = [
    scan("exception", "02 08:00", reason="address_incorrect"),
    scan("out_for_delivery", "03 07:30"),
]
SECOND_WORD = scan("delivered", "01 12:00", signer=HETU)
LATE_SIGNER = enrichment(DELIVERED, name="signed", signer=GREGOIRE)
BY_HETU = scan("delivered", "01 10:00", signer=HETU)
STAMPED = enrichment(BY_HETU, name="b", signer=GREGOIRE, stamp="2026-03-02")
OLD = scan("in_transit", "01 10:00", eta="2026-03-09")
NEW = scan("in_transit", "02 10:00", eta="2026-03-05", stamp="1")
BARE = scan("in_transit", "03 10:00")
HELD = scan("exception", "01 10:00", reason="customs_hold")
STILL = scan("exception", "02 10:00")
REFUSED = scan("returning", "03 10:00", reason="consignee_refused")
ATTEMPTED = scan("delivery_attempted", "01 10:00", reason="consignee_absent")
LABEL = scan("info_received", "01 08:00", service="UPS Ground")
VAN = scan("out_for_delivery", "03 09:00")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            [SIGNED, *BETWEEN],
            {
                "status": "delivered",
                "delivered_at": SIGNED.instant,
                "signed_by_event_id": SIGNED.event_id,
                "flags": {Flag.CONTRADICTED},
            },
            id="one delivery",
        ),
        pytest.param(
            [SIGNED_AGAIN, SIGNED, *BETWEEN],
            {
                "status": "delivered",
                "delivered_at": SIGNED_AGAIN.instant,
                "delivered_event_id": SIGNED_AGAIN.event_id,
                "signed_by_event_id": SIGNED_AGAIN.event_id,
                "status_since": SIGNED.instant,
                "flags": {Flag.CONTRADICTED, Flag.REDELIVERED},
            },
            id="another delivery moves time and signer",
        ),
        pytest.param(
            [SIGNED, scan("delivery_attempted", "03 07:30"), scan("delivered", "03 11:40")],
            {"delivered_at": at("03 11:40"), "signed_by_event_id": None},
            id="another delivery without signer does not keep the old one",
        ),
        pytest.param(
            [
                scan("delivered", "01 13:00", signer=GREGOIRE),
                DELIVERED,
                SECOND_WORD,
                scan("in_transit", "01 11:00"),
            ],
            {
                "delivered_at": DELIVERED.instant,
                "delivered_event_id": DELIVERED.event_id,
                "signed_by_event_id": SECOND_WORD.event_id,
                "flags": {Flag.CONTRADICTED},
            },
            id="a second word about one delivery only fills the signer",
        ),
        pytest.param(
            [DELIVERED, SECOND_WORD, LATE_SIGNER],
            {"signed_by_event_id": LATE_SIGNER.event_id},
            id="the first word has the signer as soon as it is known",
        ),
        pytest.param(
            [STAMPED, BY_HETU],
            {"signed_by_event_id": STAMPED.event_id},
            id="of several signers the last by stamp",
        ),
        pytest.param(
            [enrichment(BY_HETU, name="c", signer=GREGOIRE), BY_HETU],
            {"signed_by_event_id": BY_HETU.event_id},
            id="then by digest",
        ),
        pytest.param(
            [
                DELIVERED,
                scan("out_for_delivery", "02 09:00"),
                scan("delivered", "02 10:00"),
                OUT,
                enrichment(DELIVERED, name="a", signer=GREGOIRE),
                enrichment(OUT, name="b", signer=HETU),
            ],
            {"signed_by_event_id": None},
            id="a signer of an older delivery or of none does not count",
        ),
        pytest.param(
            [BARE, NEW, OLD],
            {"estimated_delivery": "2026-03-05"},
            id="the estimate of the newest scan that has one",
        ),
        *(
            pytest.param(
                [BARE, NEW, OLD, later], {"estimated_delivery": estimate}, id=f"estimate {name}"
            )
            for name, later, estimate in (
                (
                    "by a later stamp",
                    enrichment(NEW, name="a", eta="2026-03-04", stamp="2"),
                    "2026-03-04",
                ),
                (
                    "by an earlier stamp",
                    enrichment(NEW, name="a", eta="2026-03-08"),
                    "2026-03-05",
                ),
                (
                    "of an older scan",
                    enrichment(OLD, name="a", eta="2026-03-08", stamp="9"),
                    "2026-03-05",
                ),
                ("of the newest scan", enrichment(BARE, name="a", eta="2026-03-03"), "2026-03-03"),
                ("of its own", note("04 08:00", name="eta", eta="2026-03-07"), "2026-03-07"),
            )
        ),
        pytest.param(
            [
                ATTEMPTED,
                ATTEMPTED,
                scan("delivery_attempted", "02 10:00"),
                scan("returning", "03 10:00"),
                scan("delivery_attempted", "04 10:00"),
            ],
            {"attempts": 3, "status": "returning"},
            id="attempts are counted once each also on the way back",
        ),
        pytest.param([HELD, STILL], {"reason": Reason.CUSTOMS_HOLD}, id="a reason stays"),
        pytest.param(
            [HELD, scan("exception", "02 10:00", reason="payment_due")],
            {"reason": Reason.PAYMENT_DUE},
            id="until another is given",
        ),
        pytest.param(
            [HELD, STILL, BARE], {"reason": None}, id="and goes with the status that it is of"
        ),
        pytest.param(
            [HELD, REFUSED, scan("exception", "04 10:00", reason="weather")],
            {"reason": Reason.CONSIGNEE_REFUSED},
            id="a scan that does not move the status gives none",
        ),
        pytest.param(
            [
                scan("in_transit", "01 10:00"),
                scan("in_transit", "02 10:00"),
                note("03 10:00", name="n"),
            ],
            {"status_since": at("01 10:00"), "last_event_at": at("03 10:00"), "terminal": False},
            id="times are those of the events",
        ),
        pytest.param([DELIVERED], {"terminal": True}, id="a delivery ends it"),
        pytest.param(
            [scan("in_transit", "02 10:00", service="UPS SurePost"), VAN, LABEL],
            {"service": "UPS SurePost"},
            id="the service that the newest event states",
        ),
        pytest.param([VAN, LABEL], {"service": "UPS Ground"}, id="the only one stated"),
        pytest.param(
            [VAN, enrichment(VAN, name="a", eta="2026-03-04")], {"service": None}, id="no service"
        ),
        pytest.param(
            [OUT, replace(scan("exception", "09 10:00"), is_timed=False)],
            {"last_event_at": OUT.instant},
            id="a time of receipt is no newest time",
        ),
    ],
)
def test_a_shipment_is_what_its_events_say_whatever_came_first(
    given: list[Fact], expected: dict[str, object]
) -> None:
    for arrival in permutations(given):
        state = fold(arrival)
        assert {name: getattr(state, name) for name in expected} == expected


def test_a_carriers_own_event_of_who_signed_signs_the_delivery_before_it() -> None:
    first, again = (
        scan("delivered", "03 10:00", name="d1-1"),
        scan("delivered", "05 12:00", name="d1-4"),
    )
    out = scan("out_for_delivery", "05 08:00", name="d1-3")
    signed = replace(note("03 10:00", name="d1-2"), signer_digest=b"\x01")
    signed_again = replace(note("05 12:00", name="d1-0"), signer_digest=b"\x02")
    assert fold([signed, first]).signed_by_event_id == "d1-2"
    assert fold([signed]).signed_by_event_id is None
    assert fold([signed_again, out, first, again, signed]).signed_by_event_id == "d1-0"
    assert advance(fold([first, signed]), [signed_again]) is None


def test_a_step_without_a_time_moves_the_status_and_gives_no_time() -> None:
    out, delivered = replace(OUT, is_timed=False), replace(DELIVERED, is_timed=False)
    state = fold([out, delivered])
    assert (state.status, state.status_since, state.delivered_at) == (Status.DELIVERED, None, None)
    assert state.last_event_at == DELIVERED.instant, "nothing else says when"


@pytest.mark.parametrize("when", ["01 07:00", "01 12:00"])
def test_the_first_step_with_a_time_gives_it(when: str) -> None:
    timeless, timed = replace(DELIVERED, is_timed=False), scan("delivered", when)
    for arrival in permutations([timeless, timed]):
        state = fold(arrival)
        assert (state.status_since, state.delivered_at, state.last_event_at) == (timed.instant,) * 3
        step = advance(fold([arrival[0]]), [arrival[1]])
        assert step is None or step == state


def test_the_last_event_again_does_not_advance_the_state() -> None:
    failed = scan("delivery_attempted", "01 10:00")
    state = fold([failed])
    assert advance(state, [failed]) in (None, state)
