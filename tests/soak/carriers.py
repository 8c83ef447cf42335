"""Carriers at a steady rate: each push is sent again until it is acknowledged, some
once more although it was.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.soak.ledger import Ledger
from tests.soak.traffic import Told

UNDER_WAY_MAX: Final = 128
ANSWER_SECONDS: Final = 5.0
LONG_ANSWER_SECONDS: Final = 15.0
"""Of carriers that push once."""
IMPATIENT_SHARE: Final = 0.03
"""Share of the acknowledged pushes that their carriers send again, as if the ACK had come too
late.
"""
_PAUSES_SECONDS: Final = (0.1, 0.5, 1.0, 2.0)
_TAKEN: Final = 200


@dataclass(frozen=True, slots=True)
class Try:
    """A request; `began` on the monotonic clock, `status` 0: no answer."""

    began: float
    seconds: float
    status: int


@dataclass(slots=True)
class Sent:
    """Answers that the carriers got.

    Seconds run from when a push was due to its first ACK, all tries included.
    """

    pushes: int = 0
    retries: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    """By status; 0: no answer."""
    ack_seconds: list[float] = field(default_factory=list)
    acked_at: list[float] = field(default_factory=list)
    """On the monotonic clock, in order."""
    tries: list[Try] = field(default_factory=list)


class Carriers:
    """`url` is asked for at each try: an API that was started again may listen elsewhere."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        url: Callable[[], str],
        ledger: Ledger,
        pushes: Iterator[Told],
        rate: float,
        tries_once: bool = False,
    ) -> None:
        self._session = session
        self._url = url
        self._ledger = ledger
        self._pushes = pushes
        self._rate = rate
        self._tries_once = tries_once
        self._slots = asyncio.Semaphore(UNDER_WAY_MAX)
        self._unanswered: dict[int, float] = {}
        self._stopping = asyncio.Event()
        self._rng = random.Random(0)
        self.sent = Sent()

    @property
    def oldest_unanswered_seconds(self) -> float:
        """Time that the oldest push waits for its ACK; 0 when none does."""
        return time.monotonic() - next(iter(self._unanswered.values()), time.monotonic())

    def stop(self) -> None:
        """Push nothing new; `run` ends when all is acknowledged."""
        self._stopping.set()

    async def run(self) -> None:
        """Push until stopped, then until everything is acknowledged."""
        due = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while not self._stopping.is_set():
                due += 1 / self._rate
                await asyncio.sleep(due - time.monotonic())
                self.sent.pushes += 1
                self._unanswered[self.sent.pushes] = due
                group.create_task(
                    self._push(next(self._pushes), self.sent.pushes),
                    name=f"push-{self.sent.pushes}",
                )

    async def push_again(self, bodies: Iterable[Told]) -> None:
        """Push what an outage lost, as carriers do that are asked to: until all are
        acknowledged.
        """
        async with asyncio.TaskGroup() as group:
            for told in bodies:
                self.sent.pushes += 1
                self._unanswered[self.sent.pushes] = time.monotonic()
                group.create_task(
                    self._push(told, self.sent.pushes), name=f"push-{self.sent.pushes}"
                )

    async def _push(self, told: Told, number: int) -> None:
        tries = 0
        while not await self._try(told):
            if self._tries_once:
                del self._unanswered[number]
                return
            self.sent.retries += 1
            pause = _PAUSES_SECONDS[min(tries, len(_PAUSES_SECONDS) - 1)]
            tries += 1
            await asyncio.sleep(pause * self._rng.uniform(0.5, 1.0))
        self.sent.acked_at.append(time.monotonic())
        self.sent.ack_seconds.append(self.sent.acked_at[-1] - self._unanswered.pop(number))
        if not self._tries_once and self._rng.random() < IMPATIENT_SHARE:
            self.sent.retries += 1
            await self._try(told)

    async def _try(self, told: Told) -> bool:
        async with self._slots:
            began = time.monotonic()
            try:
                async with self._session.post(
                    f"{self._url()}/v1/webhooks/{told.carrier_id}",
                    data=told.body,
                    timeout=aiohttp.ClientTimeout(
                        total=LONG_ANSWER_SECONDS if self._tries_once else ANSWER_SECONDS
                    ),
                ) as answer:
                    said = await answer.json() if "json" in answer.content_type else {}
                status = answer.status
            except (aiohttp.ClientError, TimeoutError):
                status = 0
        self.sent.answers[status] += 1
        self.sent.tries.append(Try(began, time.monotonic() - began, status))
        if status != _TAKEN:
            return False
        self._ledger.note(
            told, message_id=answer.headers["Statesvc-Message-Id"], duplicate=said.get("duplicate")
        )
        return True
