"""An id without a message: unknown, or one that still waits in a spool."""

import time
from typing import Any
from uuid import uuid4

from statesvc.bodies.sealed_message import message_id

SPOOL = (
    "INSERT INTO statesvc.spool (name, seen_at, held_seconds, clear_until)"
    " VALUES ('file:a', statesvc.clock(), 60, statesvc.clock() - %s * interval '1 s')"
)


def received(seconds_ago: float) -> str:
    return str(message_id(int((time.time() - seconds_ago) * 1000), bytes(10)))


async def problem(api: Any, name: str) -> str:
    reply = await api.get(f"/v1/messages/{name}", scopes="audit")
    assert reply.status == 404
    return str(reply.body["detail"])


async def test_an_id_that_a_spool_may_hold_is_said_to_wait_there(api: Any) -> None:
    assert await problem(api, received(100)) == "no message has this id", "there is no spool"
    await api.carriers.execute(SPOOL, [300])
    assert "waits in a spool" in await problem(api, received(100))
    assert await problem(api, received(1000)) == "no message has this id", "it would be drained"
    assert await problem(api, str(uuid4())) == "no message has this id", "its time is chance"
