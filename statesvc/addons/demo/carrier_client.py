"""Posts traffic at a steady rate, as carriers do: a bounded number of requests at once, no waiting for each other's answers."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import aiohttp

from statesvc.addons.demo.display import DemoCounts
from statesvc.addons.demo.traffic import Push

IN_FLIGHT_MAX: Final = 64


class CarrierClient:
    """`rate` is in pushes a second. `url` is the service's base, without a slash at its end. `key`: push with an API key."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        url: str,
        rate: float,
        counts: DemoCounts,
        key: str | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._rate = rate
        self._counts = counts
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def run(self, traffic: Iterator[Push]) -> None:
        """Send until it is cancelled; requests that are under way then are dropped."""
        due = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for push in traffic:
                due = max(due + 1 / self._rate, time.monotonic() - 1)
                await asyncio.sleep(due - time.monotonic())
                await self._slots.acquire()
                group.create_task(self._send(push), name="demo-push")

    async def _send(self, push: Push) -> None:
        self._counts.behaviours[push.behaviour] += 1
        started = time.perf_counter()
        address = f"{self._url}/v1/webhooks/{push.carrier_id}"
        headers = {**self._headers, "Content-Type": push.content_type}
        if push.content_encoding is not None:
            headers["Content-Encoding"] = push.content_encoding
        try:
            async with self._session.post(address, data=push.body, headers=headers) as answer:
                await answer.read()
                if answer.ok:
                    self._counts.acknowledged += 1
                    self._counts.ack_milliseconds.append((time.perf_counter() - started) * 1000)
                else:
                    self._counts.refused[answer.status] += 1
        except (aiohttp.ClientError, TimeoutError):
            self._counts.unanswered += 1
        finally:
            self._slots.release()
