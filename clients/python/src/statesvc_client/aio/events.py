"""Events that you submit yourself (scope `ingest`)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from statesvc_client.arguments import written
from statesvc_client.core import models
from statesvc_client.core.client import AuthenticatedClient


class Events:
    """An event is safe to submit again: its `event_id` says that it is the same."""

    def __init__(self, core: AuthenticatedClient) -> None:
        self._core = core

    async def submit(self, event: models.CanonicalEvent | Mapping[str, Any]) -> models.EventVerdict:
        """Append one event. Raises ConflictError where its id came with other facts,
        UnprocessableError where it breaks the contract.
        """
        verdicts = await self._submit([event], "application/json")
        if not isinstance(verdicts, models.EventVerdict):
            raise TypeError("the service answered one event with verdicts of lines")
        return verdicts

    async def submit_many(
        self, events: Iterable[models.CanonicalEvent | Mapping[str, Any]]
    ) -> list[models.LineVerdict]:
        """Append events in one request, with a verdict for each; a bad one is `invalid` by
        itself.
        """
        verdicts = await self._submit(events, "application/x-ndjson")
        if not isinstance(verdicts, models.LineVerdicts):
            raise TypeError("the service answered lines with the verdict of one event")
        return verdicts.results

    async def _submit(
        self, events: Iterable[models.CanonicalEvent | Mapping[str, Any]], media_type: str
    ) -> models.EventVerdict | models.LineVerdicts:
        lines = b"\n".join(
            json.dumps(
                event.to_dict() if isinstance(event, models.CanonicalEvent) else event,
                default=written,
            ).encode()
            for event in events
        )
        response = await self._core.get_async_httpx_client().request(
            "POST", "/v1/events", content=lines, headers={"Content-Type": media_type}
        )
        document = response.json()
        return (
            models.LineVerdicts.from_dict(document)
            if "results" in document
            else models.EventVerdict.from_dict(document)
        )
