"""Calls whose answers are lost after the service has carried them out, by any client:
each has its effect once.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from tests.acceptance.processes import Service
from tests.clients.faulty_server import LossyProxy, answer

AWAY: Final = answer(503, b'{"code": "database_unavailable", "detail": "away"}')
CUT: Final = b""
SILENCE: Final = None
COUNTED: Final = {
    "submit": "SELECT count(*) FROM statesvc.event",
    "subscribe": "SELECT count(*) FROM statesvc.subscription",
    **{
        call: f"SELECT count(*) FROM statesvc.action WHERE verb = '{verb}'"
        for call, verb in (
            ("rotate", "subscription.rotate_secret"),
            ("resend", "subscription.resend"),
            ("pause", "subscription.pause"),
        )
    },
}


class Lost(NamedTuple):
    """A call of a client, the answers that it gets in place of the service's, and how it
    ends after how many tries.
    """

    call: str
    script: list[bytes | None]
    outcome: str
    tries: int

    @property
    def timeout(self) -> float:
        """Seconds that the client waits: for silence few, for the service whatever it takes."""
        return 1.0 if SILENCE in self.script else 20.0


CALLS: Final = (
    Lost("submit", [CUT, AWAY], "done", 3),
    Lost("pause", [CUT, AWAY], "done", 3),
    Lost("subscribe", [CUT], "no answer", 1),
    Lost("subscribe", [AWAY], "503", 1),
    Lost("subscribe", [SILENCE], "no answer", 1),
    Lost("rotate", [CUT], "no answer", 1),
    Lost("resend", [AWAY], "503", 1),
    Lost("resend", [CUT], "no answer", 1),
)
"""Where a call may not be repeated, its one try was carried out, too."""
ONCE: Final = [(lost.call, lost.outcome, lost.tries, 1) for lost in CALLS]
MakeCall = Callable[[str, float, str, str, str], Awaitable[str]]
"""Make at a URL, within a timeout, a call by its name, of a subscription and a notification,
and return its outcome.
"""


class Told(NamedTuple):
    """A service with a subscription that was told of one event."""

    service: Service
    subscription_id: str
    webhook_id: str


@asynccontextmanager
async def told_service(making: Awaitable[Service]) -> AsyncIterator[Told]:
    async with await making as service:
        await service.start("api", "worker")
        headers = {"Content-Type": "application/json"}
        status, made = await service.post(
            "/v1/subscriptions", json.dumps({"url": "http://127.0.0.1:9/"}), **headers
        )
        assert status == 201, made
        event = {
            "carrier_id": "ups",
            "event_id": "S-0",
            "tracking_number": "T0",
            "occurred_at": "2026-05-01T10:00:00+02:00",
        }
        status, appended = await service.post(
            "/v1/events", json.dumps(event | {"status": "picked_up"}), **headers
        )
        assert status == 201, appended
        async with asyncio.timeout(30):
            # another process decides
            while not (told := await service.rows("SELECT webhook_id FROM statesvc.notification")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        yield Told(service, made["id"], told[0][0])


async def effects(told: Told, make_call: MakeCall) -> list[tuple[str, str, int, int]]:
    """Make each of `CALLS`.

    Returns its name, how it ended, its tries, and how often the service keeps what it did.
    """
    found = []
    for lost in CALLS:
        before = await told.service.value(COUNTED[lost.call])
        async with LossyProxy(lost.script, target=told.service.api.url).running() as proxy:
            outcome = await make_call(
                proxy.url, lost.timeout, lost.call, told.subscription_id, told.webhook_id
            )
            async with asyncio.timeout(30):
                # the client gave up, the service goes on
                while proxy.carried_out < len(proxy.requests):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        found.append(
            (
                lost.call,
                outcome,
                len(proxy.requests),
                await told.service.value(COUNTED[lost.call]) - before,
            )
        )
    status, resumed = await told.service.post(
        f"/v1/subscriptions/{told.subscription_id}/resume", ""
    )
    assert status == 200, resumed
    return found
