"""The stream of real processes: from a webhook to the client, and away at once when the
process is told to stop.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.processes import Service
from tests.acceptance.stories import ups_alert
from tests.statesvc.api.stream.event_source import event_source

ServiceMaker = Callable[..., Any]
PATIENT = {"STATESVC_GRACE_SECONDS": "60", "STATESVC_DRAIN_SECONDS": "2"}


async def test_a_webhook_is_streamed_and_a_stopping_api_ends_its_streams_first(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(tmp_path, PATIENT)
    async with service:
        first, second, *_ = await service.start("api", "api", "worker", "sealer")
        async with event_source(service.session, f"{first.url}/v1/stream") as source:
            await service.webhook(
                "ups", ups_alert("1ZSTREAM0000000001", "I/OT", day=3, minute=300).body
            )
            (told,) = await source.next()
            assert told.data["tracking_number"] == "1ZSTREAM0000000001"
            started = time.monotonic()
            first.send(signal.SIGTERM)
            async with asyncio.timeout(1.5):
                assert await source.rest() == []
        async with event_source(
            service.session, f"{second.url}/v1/stream", headers={"Last-Event-ID": told.id}
        ) as source:
            assert second.url != first.url
            assert await first.exit_code() == 0
            assert time.monotonic() - started < 10
            status, _ = await service.webhook(
                "ups", ups_alert("1ZSTREAM0000000002", "I/OT", day=3, minute=300).body
            )
            assert status == 200
            assert (await source.next())[0].data["tracking_number"] == "1ZSTREAM0000000002"
