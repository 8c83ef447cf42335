"""A message of which nothing is read, though something is there, is counted apart, and a person
sees it.
"""

import json
from dataclasses import replace

from events.carriers import CARRIERS
from tests.world.shop import Shop


def evri(events: str) -> bytes:
    step = {"dateTime": "2026-03-02T10:04:00Z", "trackingStage": {"trackingStageCode": "4_COURIER"}}
    return json.dumps(
        {"results": [{"parcelIdentifiers": [{"type": "BARCODE", "value": "H1"}], events: [step]}]}
    ).encode()


async def test_a_list_under_another_name_is_a_dead_letter_and_counted_as_rejected(
    shop: Shop,
) -> None:
    shop.context = replace(shop.context, carriers=CARRIERS)
    await shop.push(evri("trackingEvents"), evri("steps"), b'{"results": []}', carrier_id="evri")
    await shop.work()
    counted = shop.context.telemetry.exposition().decode()
    for outcome in ("applied", "rejected", "empty"):
        assert (
            f'statesvc_messages_settled_total{{carrier="evri",outcome="{outcome}"}} 1.0' in counted
        )
    (detail,) = await shop.rows("SELECT detail FROM statesvc.dead_letter WHERE kind <> 'code'")
    assert detail == (
        "/results/0/trackingEvents: nothing is read here: the known list or object is absent",
    )
