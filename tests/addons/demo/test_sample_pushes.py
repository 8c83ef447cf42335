from datetime import UTC, datetime

import pytest

from events.carriers import CARRIERS
from statesvc.addons.demo.sample_pushes import SAMPLE_CARRIERS, NoSampleError, sample_push

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
