"""How long after its ACK a webhook shows in the API: sampled beside the load, each with a shipment of its own."""

import asyncio
from time import perf_counter
from typing import Final

from tests.bench.traffic import alert, alert_number
from tests.bench.wire import ask, connect, get, post

SAMPLES_A_SECOND: Final = 20
SERIES: Final = 25
_LOOK_SECONDS: Final = 0.002
_GIVE_UP_SECONDS: Final = 30.0


async def sample(*, port: int, seconds: float, key: str) -> list[float]:
    """Seconds from ACK to the first answer that knows the shipment, in order of size; to within one look (2 ms and a request)."""
    started = perf_counter() + 1
    found = []
    async with asyncio.TaskGroup() as watching:
        for number in range(int((seconds - 1) * SAMPLES_A_SECOND)):
            await asyncio.sleep(max(0.0, started + number / SAMPLES_A_SECOND - perf_counter()))
            found.append(watching.create_task(_watch(number, port=port, key=key)))
    return sorted(task.result() for task in found)


async def _watch(number: int, *, port: int, key: str) -> float:
    wire = await connect(port)
    try:
        status, _ = await ask(wire, post("/v1/webhooks/ups", alert(number, 0, series=SERIES)))
        if status != 200:
            return _GIVE_UP_SECONDS
        acknowledged = perf_counter()
        request = get(f"/v1/shipments/ups/{alert_number(number, series=SERIES)}", key)
        while perf_counter() - acknowledged < _GIVE_UP_SECONDS:
            status, _ = await ask(wire, request)
            if status == 200:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        return perf_counter() - acknowledged
    finally:
        wire.close()
