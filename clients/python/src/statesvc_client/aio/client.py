"""The client: where the service is, with which key, and how patiently."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Self

import httpx

from statesvc_client.aio.transport import AsyncRetries
from statesvc_client.answers import error_in
from statesvc_client.core.client import AuthenticatedClient
from statesvc_client.paths import service_address
from statesvc_client.retries import RetryPolicy

if TYPE_CHECKING:
    from statesvc_client.aio.events import Events
    from statesvc_client.aio.log import Log
    from statesvc_client.aio.shipments import Shipments
    from statesvc_client.aio.subscriptions import Subscriptions
    from statesvc_client.changes import Change
    from statesvc_client.core.arguments import Status
    from statesvc_client.core.models.feed_entry import FeedEntry


class AsyncClient:
    """Call a statesvc at `url` with an API key.

    Args:
        url: Where the service is, e.g. `https://statesvc.example.com`. key: An API key; its scopes
        decide what may be called. White space around it, as a file's last line has it, does not
        count. timeout: Seconds of silence after which a try is given up. retries: Which calls are
        repeated, and when. `RetryPolicy(retries=0)`: none. verify: A TLS context, or False to
        accept any certificate. proxy: URL of a proxy. headers: Sent along with every call.

    Every call raises a subclass of `ApiError` for an answer of 400 or more, and
    `httpx.TransportError` where there was none. `core` makes any call of the API with the modules
    in `statesvc_client.core.api`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: RetryPolicy | None = None,
        verify: SSLContext | bool = True,
        proxy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        base_url, key = service_address(url), (key or "").strip()
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.AsyncClient(
            base_url=base_url,
            headers={
                "User-Agent": "statesvc-client/0.1.0",
                # a misspelt member or word is an error and no warning
                "Prefer": "handling=strict",
                **(headers or {}),
                **authorization,
            },
            timeout=timeout,
            transport=AsyncRetries(
                retries or RetryPolicy(), httpx.AsyncHTTPTransport(verify=verify, proxy=proxy)
            ),
            event_hooks={"response": [_raise_problem]},
        )
        self.core = AuthenticatedClient(base_url=base_url, token=key)
        self.core.set_async_httpx_client(self.http)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    # a resource is imported when it is asked for: a program that reads shipments loads no models of
    # subscriptions
    @cached_property
    def shipments(self) -> "Shipments":
        """Shipments: where they are, how they got there, and proof of it."""
        from statesvc_client.aio.shipments import Shipments

        return Shipments(self.core)

    @cached_property
    def events(self) -> "Events":
        """Events: those that you submit yourself."""
        from statesvc_client.aio.events import Events

        return Events(self.core)

    @cached_property
    def subscriptions(self) -> "Subscriptions":
        """Subscriptions: who is told of changes."""
        from statesvc_client.aio.subscriptions import Subscriptions

        return Subscriptions(self.core)

    @cached_property
    def log(self) -> "Log":
        """Log: changes as they happen, and all entries in their order."""
        from statesvc_client.aio.log import Log

        return Log(self.core)

    def stream(
        self,
        *,
        after: str | None = None,
        carriers: Sequence[str] = (),
        statuses: Sequence["Status"] = (),
    ) -> AsyncIterator["Change"]:
        """Follow changes of status; see `Log.stream`."""
        return self.log.stream(after=after, carriers=carriers, statuses=statuses)

    def feed(self, *, after: str = "-1") -> AsyncIterator["FeedEntry"]:
        """Read the log up to its end; see `Log.feed`."""
        return self.log.feed(after=after)


async def _raise_problem(response: httpx.Response) -> None:
    if response.status_code >= 400:
        await response.aread()
        error = error_in(response)
        if error is not None:
            raise error
