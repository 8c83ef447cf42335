"""The log: changes as they happen, and all entries in their order."""

import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from statesvc_client.answers import value
from statesvc_client.changes import Change
from statesvc_client.core import models
from statesvc_client.core.api.log import get_checkpoint, read_feed
from statesvc_client.core.arguments import Status
from statesvc_client.core.client import AuthenticatedClient
from statesvc_client.errors import CursorLostError
from statesvc_client.waiting import sleep_async

_log = logging.getLogger("statesvc_client")
# The service sends a comment every 15 s.
_SILENCE_SECONDS = 45.0


class Log:
    """Changes take the scope `read`, the feed `audit`."""

    def __init__(self, core: AuthenticatedClient) -> None:
        self._core = core

    async def stream(
        self,
        *,
        after: str | None = None,
        carriers: Sequence[str] = (),
        statuses: Sequence[Status] = (),
    ) -> AsyncIterator[Change]:
        """Follow changes of status, for ever: a lost connection is taken up where it ended, nothing
        is missed or repeated.

        `after`: the `id` of the last change that you have; "-1" from the first entry on, None from
        now on.

        Raises:
            CursorLostError: The log does not have `after` any more (restored from a backup); read
            anew what you need.
        """
        last_id, pause_seconds = None if after is None else str(after), 1.0
        params = {"carrier_id": list(carriers), "status": list(statuses)}
        while True:
            headers = {} if last_id is None else {"Last-Event-ID": last_id}
            timeout = httpx.Timeout(_SILENCE_SECONDS)
            try:
                async with aconnect_sse(
                    self._core.get_async_httpx_client(),
                    "GET",
                    "/v1/stream",
                    params=params,
                    headers=headers,
                    timeout=timeout,
                ) as source:
                    async for event in source.aiter_sse():
                        last_id = event.id or last_id
                        pause_seconds = pause_seconds if event.retry is None else event.retry / 1000
                        if event.event == "reset":
                            raise CursorLostError(
                                410, {"code": "cursor_lost", "detail": event.data}
                            )
                        if event.event == "shipment.status_changed":
                            yield Change(
                                event.id,
                                models.StreamedTransition.from_dict(json.loads(event.data)),
                            )
            except httpx.TransportError as error:
                # cut off, or silent for too long: come back
                _log.warning(
                    "the stream broke off, and is taken up again: %s", error or type(error).__name__
                )
            await sleep_async(pause_seconds)

    async def feed(self, *, after: str = "-1") -> AsyncIterator[models.FeedEntry]:
        """Iterate over the entries behind a cursor, up to the log's end."""
        async for page in self.feed_pages(after=after):
            for entry in page.items:
                yield entry

    async def feed_pages(
        self, *, after: str = "-1", page_size: int = 500
    ) -> AsyncIterator[models.Feed]:
        """Iterate over the feed by pages; store the `cursor` of a page to go on behind it."""
        while True:
            page = value(
                (
                    await read_feed.asyncio_detailed(
                        client=self._core, after=after, limit=page_size
                    )
                ).parsed
            )
            yield page
            after = page.cursor
            if page.next_cursor is None:
                return

    async def transition_pages(
        self,
        *,
        after: str = "-1",
        carriers: Sequence[str] = (),
        statuses: Sequence[Status] = (),
        page_size: int = 500,
    ) -> AsyncIterator[models.TransitionFeed]:
        """Iterate over past changes of status by pages; go on with `stream(after=page.cursor)`."""
        chosen: dict[str, Any] = {
            "limit": page_size,
            "carrier_id": list(carriers),
            "status": list(statuses),
        }
        while True:
            response = await self._core.get_async_httpx_client().request(
                "GET", "/v1/feed/transitions", params={**chosen, "after": after}
            )
            page = models.TransitionFeed.from_dict(response.json())
            yield page
            after = page.cursor
            if page.next_cursor is None:
                return

    async def checkpoint(self) -> str:
        """Return the log's signed head (C2SP)."""
        return (await get_checkpoint.asyncio_detailed(client=self._core)).content.decode()
