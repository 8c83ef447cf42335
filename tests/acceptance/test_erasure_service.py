"""A person asks to be forgotten: no answer and no log line of the running service tells of them any
more, and the parcel goes on.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Service
from tests.acceptance.stories import ups_alert

NUMBER = "1ZTEST0000000077"
PERSON = "Zebedee Quux"
CALLS = (
    f"/v1/shipments/ups/{NUMBER}",
    f"/v1/shipments/ups/{NUMBER}/history",
    f"/v1/shipments/ups/{NUMBER}/audit",
)


async def _answers(service: Service) -> str:
    told = [json.dumps((await service.get(call, include="personal"))[1]) for call in CALLS]
    told.append(json.dumps((await service.get("/v1/shipments"))[1]))
    ((message_id,), *_) = await service.rows(
        "SELECT message_id FROM statesvc.message ORDER BY received_at"
    )
    async with service.session.get(
        f"{service.api.url}/v1/messages/{message_id}?include=personal"
    ) as answer:
        told.append(await answer.text())
    return "\n".join(told)


async def test_after_an_erasure_nothing_tells_of_the_person_and_the_parcel_goes_on(
    service_maker: Callable[..., Any], tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, {"STATESVC_LOG_LEVEL": "debug"})
    async with service:
        await service.start("api", "worker")
        for message in (
            ups_alert(NUMBER, "D/FS", day=7, minute=800, text=f"Left with {PERSON}", signer=PERSON),
            ups_alert(NUMBER, "D/FS", day=8, minute=800, text="Delivered", signer=PERSON),
        ):
            assert (await service.webhook(message.carrier_id, message.body))[0] == 200
        await service.drained()
        assert PERSON.upper() in (await _answers(service)).upper()
        path = f"{service.api.url}/v1/shipments/ups/{NUMBER}/erase"
        async with service.session.post(path, json={"why": "asked to"}) as answer:
            assert answer.status == 200, await answer.text()
            assert len((await answer.json())["erased"]) == 1
        assert PERSON.upper() not in (await _answers(service)).upper()
        later = ups_alert(NUMBER, "X/RS", day=9, minute=800, text=f"Returned by {PERSON}")
        assert (await service.webhook(later.carrier_id, later.body))[0] == 200
        await service.drained()
        _, shipment = await service.get(CALLS[0])
        assert (shipment["erased"], shipment["version"]) == (True, 3)
        assert PERSON.upper() not in (await _answers(service)).upper()
        logs = "\n".join(role.log.read_text() for role in service.roles)
        assert PERSON.upper() not in logs.upper()
