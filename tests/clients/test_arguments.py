"""A misspelt argument of the Python client is found when the call is made; by mypy:
`test_examples.py`.
"""

import asyncio
import importlib
from typing import Any
from uuid import UUID

import pytest

from tests.clients.faulty_server import FaultyServer, answer

pytestmark = pytest.mark.usefixtures("installed_client")


@pytest.fixture
def client_class() -> Any:
    return importlib.import_module("statesvc_client").Client


def test_an_unknown_argument_raises_and_proposes_one(client_class: Any) -> None:
    with client_class("http://127.0.0.1:9") as client:
        with pytest.raises(TypeError, match="'carier'; did you mean 'carriers'"):
            client.subscriptions.create("https://a.example/", carier=["ups"])
        with pytest.raises(TypeError, match="'statuss'; did you mean 'statuses'"):
            client.subscriptions.change(UUID(int=1), statuss=["lost"])
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
            client.shipments.list(colour="red")


async def test_arguments_are_sent_as_they_are_given(client_class: Any) -> None:
    chosen = {"status": "deliverd", "order": "newest", "details": True, "reason": None}

    def listed(url: str) -> list[Any]:
        with client_class(url) as client:
            return list(client.shipments.list(**chosen))

    page = answer(200, b'{"items": [], "next_cursor": null}')
    async with FaultyServer([page]).running() as server:
        assert await asyncio.to_thread(listed, server.url) == []
    assert server.requests == [
        "GET /v1/shipments?status=deliverd&order=newest&details=true&limit=100"
    ]
