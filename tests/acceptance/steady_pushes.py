"""Carriers that push new bodies at a steady rate, whatever becomes of them; what
was answered, and when.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple

import aiohttp

from tests.acceptance.processes import RoleProcess, Service
from tests.acceptance.stories import canonical


class Answer(NamedTuple):
    """`status` 0: none came. `at`: when the push began, by the monotonic clock."""

    at: float
    status: int
    message_id: str


class SteadyPushes:
    """Each push is a parcel of its own; none is tried again."""

    def __init__(self, service: Service, role: RoleProcess, per_second: float) -> None:
        self._service = service
        self._url = f"{role.url}/v1/webhooks/canonical"
        self._pause = 1 / per_second
        self.answers: list[Answer] = []

    @property
    def acknowledged(self) -> set[str]:
        return {answer.message_id for answer in self.answers if answer.status == 200}

    def seconds_until_well(self, since: float) -> float:
        """Return how long after `since` the last push began that was not acknowledged."""
        return max(
            (
                answer.at - since
                for answer in self.answers
                if answer.status != 200 and answer.at >= since
            ),
            default=0.0,
        )

    def refused(self, since: float) -> int:
        return sum(answer.status != 200 for answer in self.answers if answer.at >= since)

    async def well_for(self, seconds: float) -> None:
        """Wait until all pushes of that long were acknowledged."""
        began = time.monotonic()
        while True:
            await asyncio.sleep(0.1)
            recent = [
                answer
                for answer in self.answers
                if answer.at >= max(began, time.monotonic() - seconds)
            ]
            if (
                time.monotonic() - began > seconds
                and recent
                and all(answer.status == 200 for answer in recent)
            ):
                return

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            begun = time.monotonic()
            for number in count():
                group.create_task(self._push(number))
                await asyncio.sleep(max(0.0, begun + (number + 1) * self._pause - time.monotonic()))

    async def _push(self, number: int) -> None:
        at = time.monotonic()
        body = canonical(f"SP{number:08d}", f"sp-{number}", "in_transit", day=3, minute=100).body
        try:
            async with self._service.session.post(
                self._url, data=body, timeout=aiohttp.ClientTimeout(total=10)
            ) as answer:
                await answer.read()
                self.answers.append(
                    Answer(at, answer.status, answer.headers.get("Statesvc-Message-Id", ""))
                )
        except (aiohttp.ClientError, TimeoutError):
            self.answers.append(Answer(at, 0, ""))


@asynccontextmanager
async def steady_pushes(
    service: Service, role: RoleProcess, *, per_second: float
) -> AsyncIterator[SteadyPushes]:
    """Push for the time of the block."""
    pushes = SteadyPushes(service, role, per_second)
    task = asyncio.create_task(pushes.run())
    try:
        yield pushes
    finally:
        task.cancel()
        await asyncio.wait({task})
