"""Repeat what may be repeated, below everything: the generated calls have the same retries."""

import httpx

from statesvc_client.retries import RetryPolicy
from statesvc_client.waiting import sleep_async

_ENDLESS = "text/event-stream"


class AsyncRetries(httpx.AsyncBaseTransport):
    """Send a request until an answer stands, as `policy` says."""

    def __init__(self, policy: RetryPolicy, transport: httpx.AsyncBaseTransport) -> None:
        self._policy = policy
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with what stands after the retries."""
        repeats = 0
        while True:
            try:
                response = await self._transport.handle_async_request(request)
                if response.headers.get("content-type", "").partition(";")[0] != _ENDLESS:
                    # here, so that an answer that is cut off is asked for again
                    await response.aread()
            except httpx.TransportError as error:
                wait = self._policy.wait_after_error(request, error, repeats=repeats)
                if wait is None:
                    raise
            else:
                wait = self._policy.wait_after_answer(request, response, repeats=repeats)
                if wait is None:
                    return response
                await response.aclose()
            await sleep_async(wait)
            repeats += 1

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
