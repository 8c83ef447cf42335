"""The load of a day, and the subscriber to it: UPS alerts at random moments, each
shipment's scans seconds apart.

Answers with latencies.

Told: where to push, with which headers, on which port the subscriber listens, at which rate and for
how long. It ends when nothing has arrived for a while.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import uvloop
from aiohttp import web

_SHIPMENTS: Final = 400
"""In turn, so that what waits for a shipment is not the next push."""
_SCANS: Final = (("M", "MP"), ("I", "OR"), ("I", "AR"), ("D", "FS"))
_QUIET_SECONDS: Final = 2.0
_WIRES: Final = 64


def scan_of(series: int, place: int) -> tuple[str, int]:
    """Return the number of the push at this index, and which of its scans it is."""
    block, within = divmod(place, _SHIPMENTS * len(_SCANS))
    return f"1Z{series:06d}{block * _SHIPMENTS + within % _SHIPMENTS:010d}", within // _SHIPMENTS


def alert(number: str, scan: int) -> bytes:
    """Build an alert as UPS pushes it."""
    kind, code = _SCANS[scan]
    return json.dumps(
        {
            "trackingNumber": number,
            "localActivityDate": "20260303",
            "localActivityTime": f"1{scan}3000",
            "gmtActivityDate": "20260303",
            "gmtActivityTime": f"{16 + scan}3000",
            "activityLocation": {
                "city": "SPRINGFIELD",
                "stateProvince": "IL",
                "postalCode": "62701",
                "country": "US",
            },
            "activityStatus": {"type": kind, "code": code, "description": "Scan"},
        }
    ).encode()


def moments(rate: float, seconds: float) -> Iterator[float]:
    """Yield seconds from the start, with exponential pauses."""
    at = random.expovariate(rate)
    while at < seconds:
        yield at
        at += random.expovariate(rate)


async def main() -> None:
    told = json.load(sys.stdin)
    pushed_at: dict[tuple[str, int], float] = {}
    acked: list[float] = []
    notified: list[float] = []
    heard_at = time.monotonic()

    async def take(request: web.Request) -> web.Response:
        nonlocal heard_at
        heard_at = time.monotonic()
        data = (await request.json())["data"]
        if (pushed := pushed_at.get((data["tracking_number"], data.get("sequence")))) is not None:
            notified.append(heard_at - pushed)
        return web.Response(status=204)

    application = web.Application()
    application.router.add_post("/", take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", told["subscriber_port"]).start()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=_WIRES), headers=told["headers"]
    ) as session:

        async def push(place: int) -> None:
            number, scan = scan_of(told["series"], place)
            pushed_at[number, scan + 1] = began = time.monotonic()
            async with session.post(told["url"], data=alert(number, scan)) as answer:
                await answer.read()
                answer.raise_for_status()
            acked.append(time.monotonic() - began)

        start, tasks = time.monotonic(), []
        for place, at in enumerate(moments(told["rate"], told["seconds"])):
            if (pause := start + at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            tasks.append(asyncio.create_task(push(place)))
        await asyncio.gather(*tasks)
        heard_at = max(heard_at, time.monotonic())
        # for quiet, which is no event
        while (left := heard_at + _QUIET_SECONDS - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)
    await runner.cleanup()
    answer: dict[str, Any] = {
        "messages": len(acked),
        "acked": sorted(acked),
        "notified": sorted(notified),
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    uvloop.run(main())
