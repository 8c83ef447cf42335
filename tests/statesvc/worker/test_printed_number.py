"""A number is shown as the newest push prints it, and found in each spelling."""

from dataclasses import replace

import pytest

from events.carriers import CARRIERS
from projections.row import rebuilt_row
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.shipment_list import PrintedNumber, look_up_numbers
from tests.world.worker_harness import WorkerHarness

BARE, LABEL = "340434161095002710", "00340434161095002710"


def push(number: str, minute: int) -> bytes:
    event = (
        f'<data name="piece-event" event-timestamp="30.03.2026 11:0{minute}" ice="LDTMV"'
        ' ric="MVMTV" standard-event-code="AA"/>'
    )
    piece = (
        f'<data name="piece-shipment" piece-code="{number}"><data'
        f' name="piece-event-list">{event}</data></data>'
    )
    return f'<data name="piece-shipment-list" code="0">{piece}</data>'.encode()


@pytest.mark.parametrize("prints", [(BARE, LABEL), (LABEL, BARE)])
async def test_the_zeros_of_a_label_are_shown_as_printed_last(
    harness: WorkerHarness, prints: tuple[str, str]
) -> None:
    harness.context = replace(harness.context, carriers=CARRIERS)
    for minute, number in enumerate(prints):
        await harness.push(push(number, minute), carrier_id="dhl_parcel_de")
        await harness.work()
    events = await harness.rows(
        "SELECT shipment_id, canonical FROM statesvc.event ORDER BY version"
    )
    history = [decompress_json(canonical) for _, canonical in events]
    assert [
        f'"tracking_number":"{number}"'.encode() in event
        for number, event in zip(prints, history, strict=True)
    ] == [True, True]
    for carrier_id in ("dhl_parcel_de", None):
        asked = [PrintedNumber(number, carrier_id) for number in (BARE, LABEL)]
        found = await look_up_numbers(harness.connection, asked)
        assert [[shipment["tracking_number"] for shipment in each] for each in found] == [
            [prints[-1]]
        ] * 2
    assert await harness.rows("SELECT number, tracking_number FROM statesvc.shipment") == [
        (BARE, prints[-1])
    ]
    rebuilt = rebuilt_row(events[0][0], history)
    assert (rebuilt.number, rebuilt.tracking_number) == (BARE, prints[-1])
