from datetime import UTC, datetime
from random import Random

import pytest

from events.carriers import CARRIERS
from events.vocabulary import Kind, Status
from projections.lifecycle import MOVES, Flag
from statesvc.addons.demo.dialects import DIALECTS
from statesvc.addons.demo.parcels import ParcelStep, invent

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
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
