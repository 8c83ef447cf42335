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


def test_another_delivery_moves_time_and_signer() -> None:
    first = scan("delivered", "01 10:15", signer=GREGOIRE)
    second = scan("delivered", "03 11:40", signer=HETU)
    between = [
        scan("exception", "02 08:00", reason="address_incorrect"),
        scan("out_for_delivery", "03 07:30"),
    ]

    before = fold([first, *between])
    after = fold([second, first, *between])

    assert (before.status, before.delivered_at, before.signed_by_event_id) == (
        Status.DELIVERED,
        first.instant,
        first.event_id,
    )
    assert before.flags == {Flag.CONTRADICTED}
    assert (after.status, after.delivered_at, after.signed_by_event_id) == (
        Status.DELIVERED,
        second.instant,
        second.event_id,
    )
    assert after.flags == {Flag.CONTRADICTED, Flag.REDELIVERED}
    assert (after.delivered_event_id, after.status_since) == (second.event_id, first.instant)


def test_another_delivery_without_signer_does_not_keep_the_old_one() -> None:
    state = fold(
        [
            scan("delivered", "01 10:15", signer=GREGOIRE),
            scan("delivery_attempted", "03 07:30"),
            scan("delivered", "03 11:40"),
        ]
    )
    assert (state.delivered_at, state.signed_by_event_id) == (at("03 11:40"), None)


def test_a_second_word_about_one_delivery_only_fills_the_signer() -> None:
    second = scan("delivered", "01 12:00", signer=HETU)
    third = scan("delivered", "01 13:00", signer=GREGOIRE)
    state = fold([third, DELIVERED, second, scan("in_transit", "01 11:00")])
    assert (state.delivered_at, state.delivered_event_id, state.signed_by_event_id) == (
        DELIVERED.instant,
        DELIVERED.event_id,
        second.event_id,
    )
    assert Flag.REDELIVERED not in state.flags


def test_the_first_word_of_a_delivery_has_the_signer_as_soon_as_it_is_known() -> None:
    second = scan("delivered", "01 12:00", signer=HETU)
    late = enrichment(DELIVERED, name="signed", signer=GREGOIRE)
    assert fold([DELIVERED, second, late]).signed_by_event_id == late.event_id


def test_of_several_signers_of_one_event_the_last_by_stamp_then_digest_counts() -> None:
    signed = scan("delivered", "01 10:00", signer=HETU)
    later = enrichment(signed, name="b", signer=GREGOIRE, stamp="2026-03-02")
    assert fold([later, signed]).signed_by_event_id == later.event_id
    unstamped = enrichment(signed, name="c", signer=GREGOIRE)
    assert fold([unstamped, signed]).signed_by_event_id == signed.event_id


def test_who_signed_for_an_older_delivery_or_for_no_delivery_does_not_count() -> None:
    story = [DELIVERED, scan("out_for_delivery", "02 09:00"), scan("delivered", "02 10:00"), OUT]
    signers = [
        enrichment(DELIVERED, name="a", signer=GREGOIRE),
        enrichment(OUT, name="b", signer=HETU),
    ]
    assert fold([*story, *signers]).signed_by_event_id is None


def test_the_estimate_is_the_last_of_the_newest_scan_that_has_one() -> None:
    old = scan("in_transit", "01 10:00", eta="2026-03-09")
    new = scan("in_transit", "02 10:00", eta="2026-03-05", stamp="1")
    bare = scan("in_transit", "03 10:00")
    assert fold([bare, new, old]).estimated_delivery == "2026-03-05"
    assert (
        fold(
            [bare, new, old, enrichment(new, name="a", eta="2026-03-04", stamp="2")]
        ).estimated_delivery
        == "2026-03-04"
    )
    assert (
        fold([bare, new, old, enrichment(new, name="a", eta="2026-03-08")]).estimated_delivery
        == "2026-03-05"
    )
    assert (
        fold(
            [bare, new, old, enrichment(old, name="a", eta="2026-03-08", stamp="9")]
        ).estimated_delivery
        == "2026-03-05"
    )
    assert (
        fold([bare, new, old, enrichment(bare, name="a", eta="2026-03-03")]).estimated_delivery
        == "2026-03-03"
    )
    assert (
        fold([bare, new, note("04 08:00", name="eta", eta="2026-03-07")]).estimated_delivery
        == "2026-03-07"
    )


def test_attempts_are_counted_once_each_also_on_the_way_back() -> None:
    first = scan("delivery_attempted", "01 10:00", reason="consignee_absent")
    state = fold(
        [
            first,
            first,
            scan("delivery_attempted", "02 10:00"),
            scan("returning", "03 10:00"),
            scan("delivery_attempted", "04 10:00"),
        ]
    )
    assert (state.attempts, state.status) == (3, Status.RETURNING)


def test_a_reason_stays_while_its_status_does() -> None:
    held = scan("exception", "01 10:00", reason="customs_hold")
    still = scan("exception", "02 10:00")
    assert fold([held, still]).reason is Reason.CUSTOMS_HOLD
    assert (
        fold([held, scan("exception", "02 10:00", reason="payment_due")]).reason
        is Reason.PAYMENT_DUE
    )
    assert fold([held, still, scan("in_transit", "03 10:00")]).reason is None
    refused = scan("returning", "03 10:00", reason="consignee_refused")
    assert (
        fold([held, refused, scan("exception", "04 10:00", reason="weather")]).reason
        is Reason.CONSIGNEE_REFUSED
    )


def test_times_are_those_of_the_events() -> None:
    state = fold(
        [scan("in_transit", "01 10:00"), scan("in_transit", "02 10:00"), note("03 10:00", name="n")]
    )
    assert (state.status_since, state.last_event_at, state.terminal) == (
        at("01 10:00"),
        at("03 10:00"),
        False,
    )
    assert fold([DELIVERED]).terminal


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


def test_a_time_of_receipt_is_no_newest_time() -> None:
    late = replace(scan("exception", "09 10:00"), is_timed=False)
    for arrival in permutations([OUT, late]):
        assert fold(arrival).last_event_at == OUT.instant


def test_the_service_is_the_one_that_the_newest_event_states() -> None:
    label, arrival, van = (
        scan("info_received", "01 08:00", service="UPS Ground"),
        scan("in_transit", "02 10:00", service="UPS SurePost"),
        scan("out_for_delivery", "03 09:00"),
    )
    assert fold([arrival, van, label]).service == "UPS SurePost"
    assert fold([van, label]).service == "UPS Ground"
    assert fold([van, enrichment(van, name="a", eta="2026-03-04")]).service is None


def test_the_last_event_again_does_not_advance_the_state() -> None:
    failed = scan("delivery_attempted", "01 10:00")
    state = fold([failed])
    assert advance(state, [failed]) in (None, state)
