"""The Python clients before a real service whose answers are lost: what is repeated has its effect
once, and nothing else is repeated.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.acceptance.processes import BOOTSTRAP_KEY, Service
from tests.clients.lost_answers import ONCE, effects, told_service

pytestmark = pytest.mark.usefixtures("own_processes", "installed_client")


def called(client: Any, call: str, subscription_id: str, webhook_id: str) -> Any:
    event = {
        "carrier_id": "ups",
        "tracking_number": "T1",
        "occurred_at": "2026-05-01T10:00:00+02:00",
        "status": "in_transit",
    }
    subscription = UUID(subscription_id)
    match call:
        case "submit":
            return client.events.submit(event | {"event_id": uuid4().hex})
        case "subscribe":
            return client.subscriptions.create("http://127.0.0.1:9/another")
        case "rotate":
            return client.subscriptions.rotate_secret(subscription)
        case "pause":
            return client.subscriptions.pause(subscription)
        case _:
            return client.subscriptions.resend(subscription, webhook_id)


async def test_a_lost_answer_makes_no_second_effect(
    service_maker: Callable[..., Awaitable[Service]], tmp_path: Path
) -> None:
    package = importlib.import_module("statesvc_client")
    policy = importlib.import_module("statesvc_client.retries").RetryPolicy(
        first_wait=0.01, longest_wait=0.02
    )
    options = {"key": BOOTSTRAP_KEY, "retries": policy}

    async def ended(answered: Awaitable[Any]) -> str:
        try:
            await answered
        except package.ApiError as error:
            return str(error.status)
        except httpx.TransportError:
            return "no answer"
        return "done"

    # the client's
    async def with_async_client(url: str, timeout: float, *call: str) -> str:  # noqa: ASYNC109
        async with package.AsyncClient(url, timeout=timeout, **options) as client:
            return await ended(called(client, *call))

    # the client's
    async def with_client(url: str, timeout: float, *call: str) -> str:  # noqa: ASYNC109
        with package.Client(url, timeout=timeout, **options) as client:
            return await ended(asyncio.to_thread(called, client, *call))

    async with told_service(service_maker(tmp_path, {})) as told:
        assert await effects(told, with_client) == ONCE
        assert await effects(told, with_async_client) == ONCE
