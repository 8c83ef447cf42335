"""Findings of fuzzing, so that they stay found."""

from events.carriers import CARRIERS
from tests.fuzz.examine import RECEIVED_AT

DHL_EXPRESS = b"""<TrackingResponse><AWBInfo><AWBNumber>1</AWBNumber><AWBNumber>1</AWBNumber><ShipmentInfo><ShipmentEvent>
<Date>2026-03-01</Date><Time>10:00:00</Time><ServiceEvent><EventCode>PU</EventCode></ServiceEvent>
</ShipmentEvent></ShipmentInfo></AWBInfo></TrackingResponse>"""

DPD = b"""<GetShipmentTraceResponse><GetShipmentTraceResult>%b<Traces><clsTrace><ScanDate>2026-03-01</ScanDate><ScanTime>10:00:00</ScanTime>
<StatusNumber>40</StatusNumber></clsTrace></Traces></GetShipmentTraceResult></GetShipmentTraceResponse>""" % (
    b"<ShipmentNumber>250000000000000001</ShipmentNumber>" * 2
)


def test_a_parcel_that_prints_its_number_more_than_once_is_read_once() -> None:
    carrier = CARRIERS["dpd"]
    assert len(carrier.normalizers[carrier.stable](DPD, RECEIVED_AT).readings) == 1


def test_a_waybill_that_prints_its_number_more_than_once_is_read_once() -> None:
    carrier = CARRIERS["dhl_express"]
    assert len(carrier.normalizers[carrier.stable](DHL_EXPRESS, RECEIVED_AT).readings) == 1


def test_a_number_in_a_form_holds_no_nul() -> None:
    carrier = CARRIERS["ghtk"]
    body = b"label_id=S1%00A&status_id=5&action_time=2026-03-01T10:00:00Z"
    (reading,) = carrier.normalizers[carrier.stable](body, RECEIVED_AT).readings
    assert reading.tracking_number == "S1\ufffdA"
