"""What the calls of a resource share: lists by pages, and bodies of keyword arguments."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, Self, TypeVar

from statesvc_client.arguments import query_of, written
from statesvc_client.core.client import AuthenticatedClient

T = TypeVar("T")


class Answer(Protocol):
    """A generated model."""

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Read the answer's JSON."""


class Page(Answer, Protocol[T]):
    """A generated model of a page."""

    items: list[T]
    next_cursor: str | None


A = TypeVar("A", bound=Answer)


class Resource:
    """Calls about one kind of thing."""

    def __init__(self, core: AuthenticatedClient) -> None:
        self._core = core

    async def _items(
        self, path: str, page: type[Page[T]], filters: Mapping[str, Any], page_size: int
    ) -> AsyncIterator[T]:
        """Iterate over a list, page by page."""
        cursor: str | None = None
        while True:
            query = query_of({**filters, "limit": page_size, "cursor": cursor})
            response = await self._core.get_async_httpx_client().request("GET", path, params=query)
            read = page.from_dict(response.json())
            for item in read.items:
                yield item
            cursor = read.next_cursor
            if cursor is None:
                return

    async def _send(
        self, method: str, path: str, answer: type[A], body: Mapping[str, Any], why: str | None
    ) -> A:
        """Send a body and read the answer."""
        response = await self._core.get_async_httpx_client().request(
            method,
            path,
            content=json.dumps(body, default=written),
            headers={
                "Content-Type": "application/json",
                **({"Statesvc-Why": why} if why else {}),
            },
        )
        return answer.from_dict(response.json())
