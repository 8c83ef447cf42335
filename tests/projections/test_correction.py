import pytest

from events.vocabulary import Kind, Reason, Status
from projections.fact import Fact
from projections.fold import fold
from projections.lifecycle import Flag
from tests.projections.parcel_story import at, enrichment, note, reread, retraction, scan

SIGNER = b"\x07"
LABEL = scan("info_received", "01 08:00", code="MP")
PICKUP = scan("picked_up", "01 10:00", code="PU")
ARRIVAL = scan("in_transit", "02 10:00", code="AR")
OUT = scan("out_for_delivery", "03 08:00")
DELIVERED = scan("delivered", "03 10:00", signer=SIGNER)


def test_a_void_pickup_takes_back_the_pickup_and_nothing_else() -> None:
    void = retraction("02 12:00", name="vp", code="VP", carrier="ups")
    assert fold([LABEL, PICKUP, void]).status is Status.INFO_RECEIVED
    state = fold([LABEL, PICKUP, ARRIVAL, void])
    assert (state.status, state.status_since, state.flags) == (
        Status.IN_TRANSIT,
        ARRIVAL.instant,
        frozenset(),
    )


def test_a_retraction_whose_family_was_never_scanned_is_only_flagged() -> None:
    state = fold([LABEL, ARRIVAL, retraction("02 12:00", name="cd", code="CD", carrier="ups")])
    assert (state.status, state.flags) == (Status.IN_TRANSIT, frozenset({Flag.CONTRADICTED}))


def test_a_retraction_without_target_takes_back_the_event_before_it() -> None:
    storn = retraction("03 10:05", name="storn", code="STORN")
    state = fold([storn, DELIVERED, OUT, ARRIVAL])
    assert (state.status, state.delivered_at, state.signed_by_event_id, state.flags) == (
        Status.OUT_FOR_DELIVERY,
        None,
        None,
        frozenset(),
    )


def test_a_retraction_at_the_instant_of_its_event_finds_it() -> None:
    assert (
        fold([OUT, DELIVERED, retraction("03 10:00", name="storn")]).status
        is Status.OUT_FOR_DELIVERY
    )
    today = scan("delivered", "03")
    assert fold([OUT, today, retraction("03", name="storn")]).status is Status.OUT_FOR_DELIVERY


def test_each_retraction_takes_back_one_more() -> None:
    twice = [retraction("03 10:05", name="a"), retraction("03 10:06", name="b")]
    assert fold([ARRIVAL, OUT, DELIVERED, *twice]).status is Status.IN_TRANSIT


def test_a_retraction_finds_a_scan_that_arrives_after_it() -> None:
    storn = retraction("03 10:05", name="storn")
    assert fold([OUT, storn]).status is Status.UNKNOWN
    assert fold([OUT, storn, DELIVERED]).status is Status.OUT_FOR_DELIVERY


def test_a_retraction_that_finds_nothing_is_only_flagged() -> None:
    assert fold([retraction("01 07:00", name="storn"), OUT]).flags == {Flag.CONTRADICTED}


def test_a_carrier_may_name_the_event_even_a_later_one() -> None:
    assert (
        fold([OUT, DELIVERED, retraction("01 10:00", name="x", target=DELIVERED.event_id)]).status
        is Status.OUT_FOR_DELIVERY
    )


def test_a_named_event_that_has_not_come_is_awaited() -> None:
    state = fold([OUT, retraction("03 12:00", name="x", target=DELIVERED.event_id)])
    assert (state.status, state.pending) == (
        Status.OUT_FOR_DELIVERY,
        frozenset({DELIVERED.event_id}),
    )
    assert state.flags == {Flag.CONTRADICTED}


def test_a_correction_with_a_status_reads_the_event_again_at_its_old_time() -> None:
    unmapped = note("02 18:00", name="u", kind=Kind.UNMAPPED)
    mapped = reread(unmapped, name="m", status="exception", reason="weather")
    state = fold([ARRIVAL, unmapped, mapped])
    assert (state.status, state.reason, state.status_since) == (
        Status.EXCEPTION,
        Reason.WEATHER,
        at("02 18:00"),
    )
    assert fold([ARRIVAL, unmapped, mapped, OUT]).status is Status.OUT_FOR_DELIVERY


def test_a_day_long_event_is_sorted_by_its_new_reading() -> None:
    unmapped = note("03", name="u", kind=Kind.UNMAPPED)
    assert (
        fold([OUT, unmapped, reread(unmapped, name="m", status="delivered")]).status
        is Status.DELIVERED
    )


def test_the_end_of_a_chain_is_the_reading() -> None:
    first = reread(ARRIVAL, name="z", status="exception", reason="held")
    second = reread(ARRIVAL, name="y", status=None, replaces=first)
    third = reread(ARRIVAL, name="x", status="available_for_pickup", replaces=second)
    assert fold([PICKUP, ARRIVAL, first]).status is Status.EXCEPTION
    assert fold([PICKUP, ARRIVAL, first, second]).status is Status.PICKED_UP
    assert fold([PICKUP, ARRIVAL, third, first, second]).status is Status.AVAILABLE_FOR_PICKUP


def test_a_chain_may_also_be_found_by_what_each_link_corrects() -> None:
    first = reread(ARRIVAL, name="z", status="exception")
    second = reread(first, name="y", status="available_for_pickup")
    assert fold([PICKUP, ARRIVAL, first, second]).status is Status.AVAILABLE_FOR_PICKUP


def test_the_end_of_a_chain_may_bring_the_signer() -> None:
    unmapped = note("03 10:00", name="u", kind=Kind.UNMAPPED)
    correction = reread(unmapped, name="m", status="delivered")
    signed = Fact(
        event_id=correction.event_id,
        kind=correction.kind,
        instant=correction.instant,
        status=correction.status,
        corrects=correction.corrects,
        signer_digest=SIGNER,
    )
    assert fold([OUT, unmapped, signed]).signed_by_event_id == correction.event_id


def test_a_carriers_retraction_outlasts_our_reading_of_the_event() -> None:
    storn = retraction("03 10:05", name="storn", target=DELIVERED.event_id)
    assert (
        fold([OUT, DELIVERED, storn, reread(DELIVERED, name="r", status="delivered")]).status
        is Status.OUT_FOR_DELIVERY
    )


def test_a_retraction_that_was_misread_can_be_taken_back() -> None:
    storn = retraction("03 10:05", name="storn")
    assert (
        fold([OUT, DELIVERED, storn, reread(storn, name="r", status=None)]).status
        is Status.DELIVERED
    )


def test_a_retraction_can_be_retracted_by_a_later_one() -> None:
    storn = retraction("03 10:05", name="a", target=DELIVERED.event_id)
    undo = retraction("03 10:06", name="b", target="a")
    assert fold([OUT, DELIVERED, storn, undo]).status is Status.DELIVERED


def test_a_correction_can_only_be_taken_back_by_a_later_one() -> None:
    storn = retraction("03 10:05", name="b", target=DELIVERED.event_id)
    state = fold([OUT, DELIVERED, storn, retraction("03 10:04", name="a", target="b")])
    assert state.status is Status.OUT_FOR_DELIVERY
    assert state.flags == {Flag.CONTRADICTED}
    assert fold([retraction("04 10:00", name="a", target="a")]).flags == {Flag.CONTRADICTED}


def test_of_two_corrections_of_one_event_the_later_counts() -> None:
    gone = retraction("03 11:00", name="a", target=DELIVERED.event_id)
    attempted = retraction(
        "03 12:00", name="b", target=DELIVERED.event_id, status="delivery_attempted"
    )
    assert fold([OUT, DELIVERED, gone, attempted]).status is Status.DELIVERY_ATTEMPTED


def test_an_event_that_was_read_again_can_still_be_taken_back() -> None:
    updated = retraction("03 10:05", name="a", status="delivery_attempted")
    assert fold([OUT, DELIVERED, updated]).status is Status.DELIVERY_ATTEMPTED
    assert (
        fold([OUT, DELIVERED, updated, retraction("03 10:06", name="b")]).status
        is Status.OUT_FOR_DELIVERY
    )


def test_what_was_said_of_the_estimate_outlives_the_scan() -> None:
    estimated = scan("in_transit", "02 10:00", eta="2026-03-05")
    assert (
        fold([estimated, reread(estimated, name="r", status=None)]).estimated_delivery
        == "2026-03-05"
    )
    later = enrichment(ARRIVAL, name="e", eta="2026-03-06")
    assert fold([ARRIVAL, later, reread(later, name="r", status=None)]).estimated_delivery is None


@pytest.mark.parametrize(
    "corrections",
    [
        [
            retraction("04 10:00", name="a", target="b"),
            retraction("04 10:00", name="b", target="a"),
        ],
        [retraction("04 10:00", name="a", target="a")],
        [
            reread(retraction("04 10:00", name="c1-b"), name="a", status="lost"),
            reread(retraction("04 10:00", name="c1-a"), name="b", status="lost"),
        ],
        [reread(retraction("04 10:00", name="c1-a"), name="a", status="lost")],
    ],
)
def test_corrections_that_chase_each_other_move_nothing(corrections: list[Fact]) -> None:
    assert fold([OUT, *corrections]).status is Status.OUT_FOR_DELIVERY
