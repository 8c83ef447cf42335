"""The demo: its dialects, pushes, traffic and subscriber, and the name of 0.1.0."""

from collections import Counter
from datetime import UTC, datetime
from itertools import islice, pairwise
from pkgutil import resolve_name
from random import Random

import pytest
from standardwebhooks import Webhook

from events.carriers import CARRIERS
from events.vocabulary import Kind, Status
from projections.lifecycle import MOVES, Flag
from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import ParcelStep, invent
from statesvc.addons.demo.sample_pushes import SAMPLE_CARRIERS, NoSampleError, sample_push
from statesvc.addons.demo.subscriber import TOLERANCE_SECONDS, is_genuine
from statesvc.addons.demo.traffic import Behaviour, Push, pushes

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def some(seed: int, count: int) -> list[Push]:
    return list(islice(pushes(Random(seed), lambda: NOW), count))


def test_the_same_seed_tells_the_same_story() -> None:
    assert some(7, 200) == some(7, 200)
    assert some(7, 200) != some(8, 200)


def test_everything_that_real_carriers_do_happens() -> None:
    seen = Counter(push.behaviour for push in some(1, 3000))
    assert set(seen) == set(Behaviour)
    assert seen[Behaviour.PLAIN] > 3000 / 2


def test_a_duplicate_repeats_the_push_before_it_byte_for_byte() -> None:
    traffic = some(2, 500)
    for before, push in pairwise(traffic):
        if push.behaviour is Behaviour.DUPLICATE:
            assert (push.carrier_id, push.body) == (before.carrier_id, before.body)


EXPECTED = {
    ParcelStep.LABEL: {Status.INFO_RECEIVED, Status.PICKED_UP},
    ParcelStep.DEPART: {Status.IN_TRANSIT},
    ParcelStep.ARRIVE: {Status.IN_TRANSIT},
    ParcelStep.DELIVERED: {Status.DELIVERED},
}


@pytest.mark.parametrize("carrier_id", sorted(DIALECTS))
def test_the_carriers_normalizer_reads_what_the_sample_carrier_writes(carrier_id: str) -> None:
    carrier = CARRIERS[carrier_id]
    for seed in range(40):
        parcel = invent(Random(seed), carrier_id, NOW)
        body = DIALECTS[carrier_id][1](parcel, parcel.scans)
        normalized = carrier.normalizers[carrier.stable](body, NOW)
        assert not normalized.rejections
        said = {reading.time.instant.replace(second=0): reading for reading in normalized.readings}
        scans = parcel.scans[-1:] if carrier_id == "ups" else parcel.scans
        assert len(normalized.readings) == len(scans)
        for scan in scans:
            reading = said[scan.at.astimezone(UTC).replace(second=0)]
            assert reading.tracking_number == parcel.number
            assert reading.status in EXPECTED.get(scan.step, {reading.status})


@pytest.mark.parametrize("carrier_id", ["ups", "fedex", "usps", "dhl_express"])
def test_a_strange_code_is_unknown_to_the_normalizer(carrier_id: str) -> None:
    parcels = [invent(Random(seed), carrier_id, NOW) for seed in range(200)]
    parcel = next(
        parcel
        for parcel in parcels
        if any(scan.step is ParcelStep.STRANGE for scan in parcel.scans)
    )
    strange = [scan for scan in parcel.scans if scan.step is ParcelStep.STRANGE]
    carrier = CARRIERS[carrier_id]
    (reading,) = carrier.normalizers[carrier.stable](
        DIALECTS[carrier_id][1](parcel, strange), NOW
    ).readings
    assert reading.kind is Kind.UNMAPPED


@pytest.mark.parametrize("carrier_id", sorted(DIALECTS))
def test_a_scan_after_the_delivery_contradicts_it(carrier_id: str) -> None:
    parcels = (invent(Random(seed), carrier_id, NOW) for seed in range(400))
    parcel = next(parcel for parcel in parcels if parcel.scans[-2].step is ParcelStep.DELIVERED)
    carrier = CARRIERS[carrier_id]
    (reading,) = carrier.normalizers[carrier.stable](
        DIALECTS[carrier_id][1](parcel, parcel.scans[-1:]), NOW
    ).readings
    assert reading.status is not None
    assert MOVES[Status.DELIVERED, reading.status].flag is Flag.CONTRADICTED


def test_the_name_of_0_1_0_leads_to_the_add_on() -> None:
    assert callable(resolve_name("statesvc.demo.movable_clock:advance_clock"))
    assert callable(resolve_name("statesvc.demo.sample_pushes:sample_push"))


AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("carrier_id", SAMPLE_CARRIERS)
@pytest.mark.parametrize("status", ["picked_up", "in_transit", "delivered"])
def test_a_sample_is_read_as_the_status_that_was_asked_for(carrier_id: str, status: str) -> None:
    push = sample_push(carrier_id, status, at=AT)
    carrier = CARRIERS[carrier_id]
    (reading,) = carrier.normalizers[carrier.stable](push.body, AT).readings
    assert (reading.status, reading.tracking_number) == (status, push.number)


def test_what_no_sample_says_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        NoSampleError,
        match=r"no sample of ups says 'lost'; they say info_received, picked_up, in_transit",
    ):
        sample_push("ups", "lost", at=AT)
    with pytest.raises(NoSampleError, match="of ups, fedex"):
        sample_push("tnt", "delivered", at=AT)


SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS10ZXN0cy0zMi1ieXRlcy1sb25n"
BODY = b'{"type": "shipment.status_changed"}'


def signed() -> dict[str, str]:
    signature = Webhook(SECRET).sign("n1-1", AT, BODY.decode())
    return {
        "webhook-id": "n1-1",
        "webhook-timestamp": str(int(AT.timestamp())),
        "webhook-signature": f"v1,AAAA {signature}",
    }


def test_what_the_reference_library_signs_is_genuine() -> None:
    assert is_genuine(SECRET, signed(), BODY, now=AT.timestamp())


@pytest.mark.parametrize(
    ("changed", "body", "later"),
    [
        ({"webhook-id": "n1-2"}, BODY, 0),
        ({"webhook-signature": "v1,AAAA"}, BODY, 0),
        ({"webhook-timestamp": ""}, BODY, 0),
        ({}, BODY + b" ", 0),
        ({}, BODY, TOLERANCE_SECONDS + 1),
    ],
)
def test_anything_else_is_not(changed: dict[str, str], body: bytes, later: int) -> None:
    assert not is_genuine(SECRET, signed() | changed, body, now=AT.timestamp() + later)
