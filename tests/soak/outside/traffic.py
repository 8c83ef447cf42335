"""Many parcels at once, each pushed in its planned order: every body until it is acknowledged, some
again although they were.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.soak.outside.client import Client
from tests.soak.outside.parcels import Parcel, Push
from tests.soak.outside.record import Record

LANES: Final = 120
IMPATIENT_SHARE: Final = 0.05
SETTLED: Final = {"settled", "dead_letter", "discarded"}
_PAUSES_SECONDS: Final = (0.1, 0.3, 0.6, 1.2)

Erase = Callable[[str, str], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Runs until `stop`; then the parcels under way are brought to their end.

    `answers`: of pushes, by status; 0: none came.
    """

    client: Client
    record: Record
    plan: Iterator[Parcel]
    rate: float
    rng: random.Random
    erase: Erase
    answers: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    ack_seconds: list[float] = field(default_factory=list)
    pushes: int = 0
    stopping: bool = False
    _due: float = field(default_factory=time.monotonic)

    def stop(self) -> None:
        self.stopping = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(LANES):
                group.create_task(self._lane(), name=f"lane-{number}")

    async def _lane(self) -> None:
        while not self.stopping:
            await self._parcel(next(self.plan))

    async def _turn(self) -> None:
        """Push one at a time, at the rate; what an outage held up is not caught up at once."""
        self._due = max(self._due + 1 / self.rate, time.monotonic() - 1)
        await asyncio.sleep(self._due - time.monotonic())

    async def _parcel(self, parcel: Parcel) -> None:
        key = self.record.begin(parcel)
        acknowledged: list[str] = []
        for place, push in enumerate(parcel.pushes):
            if parcel.erase_after == place:
                await self.erase(parcel.carrier_id, parcel.number)
            if push.last:
                for message in acknowledged:
                    await self._settled(message)
            await self._turn()
            if message := await self._push(self.record.send(key, push), push):
                acknowledged.append(message)
        if parcel.erase_after == len(parcel.pushes):
            for message in acknowledged:
                await self._settled(message)
            await self.erase(parcel.carrier_id, parcel.number)
        if key % 3 == 0:
            for number in sorted({push.named for push in parcel.pushes if push.named}):
                await self.erase(parcel.carrier_id, number)

    async def _push(self, body: int, push: Push) -> str:
        began, tries = time.monotonic(), 0
        self.pushes += 1
        while (message := await self._try(body, push)) is None:
            await asyncio.sleep(
                _PAUSES_SECONDS[min(tries, len(_PAUSES_SECONDS) - 1)] * self.rng.uniform(0.5, 1.0)
            )
            tries += 1
        self.ack_seconds.append(time.monotonic() - began)
        if self.rng.random() < IMPATIENT_SHARE:
            await self._try(body, push)
        return message

    async def _try(self, body: int, push: Push) -> str | None:
        """Push once; return the message's id, empty where its call has none, None without an
        ACK.
        """
        path = "/v1/events" if push.direct else f"/v1/webhooks/{push.carrier_id}"
        status, headers, text = await self.client.once("POST", path, push.body)
        self.answers[status] += 1
        if push.direct:
            if status in {200, 201}:
                self.record.acknowledge(body, "", duplicate=status == 200)
                return ""
            if status not in {0, 503}:
                self.wrong.append(f"POST /v1/events: {status} {text[:200]!r}")
            return None
        if status != 200:
            if status not in {0, 503}:
                self.wrong.append(f"{path}: {status} {text[:200]!r}")
            return None
        said = json.loads(text) if "json" in headers.get("Content-Type", "") and text else {}
        message = headers["Statesvc-Message-Id"]
        self.record.acknowledge(body, message, duplicate=bool(said.get("duplicate")))
        return message

    async def _settled(self, message: str) -> None:
        """Wait until it took effect: only then is it known which of two statements came first."""
        while True:
            status, told = await self.client.get(f"/v1/messages/{message}")
            if status == 200 and told["state"] in SETTLED:
                return
            await asyncio.sleep(0.2)
