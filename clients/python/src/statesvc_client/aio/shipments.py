"""Shipments: where they are, how they got there, and proof of it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, Unpack
from uuid import UUID

from statesvc_client.aio.resource import Resource
from statesvc_client.answers import value
from statesvc_client.arguments import checked
from statesvc_client.core import models
from statesvc_client.core.api.shipments import (
    await_shipment,
    erase_shipment,
    get_shipment,
    get_shipment_audit,
    get_shipment_by_id,
    get_shipment_history,
    get_shipment_references,
    look_up_shipments,
    set_shipment_references,
    stop_awaiting_shipment,
)
from statesvc_client.core.arguments import ShipmentFilters
from statesvc_client.core.types import UNSET
from statesvc_client.paths import evidence_path

_MEDIA_TYPES = {
    "json": "application/json",
    "html": "text/html",
    "pdf": "application/pdf",
    "zip": "application/zip",
}


class Shipments(Resource):
    """Calls with the scope `read`; audit and evidence take `audit`, references `ingest`, personal
    fields `pii`.
    """

    async def get(
        self,
        carrier_id: str,
        tracking_number: str,
        *,
        discriminator: str | None = None,
        as_of: datetime | None = None,
        personal: bool = False,
        max_staleness: float | None = None,
    ) -> models.Shipment:
        """Return a shipment's state, `as_of` what was known then."""
        answer = await get_shipment.asyncio_detailed(
            carrier_id,
            tracking_number,
            client=self._core,
            discriminator=discriminator,
            as_of=as_of,
            include="personal" if personal else None,
            max_staleness=max_staleness,
        )
        shipment: models.Shipment = value(answer.parsed)
        return shipment

    async def get_by_id(
        self, shipment_id: UUID, *, as_of: datetime | None = None, personal: bool = False
    ) -> models.Shipment:
        """Return the state of the shipment that feed, stream and notifications name by its id."""
        include: Literal["personal"] | None = "personal" if personal else None
        answer = await get_shipment_by_id.asyncio_detailed(
            shipment_id, client=self._core, as_of=as_of, include=include
        )
        shipment: models.Shipment = value(answer.parsed)
        return shipment

    def list(
        self, *, page_size: int = 100, **filters: Unpack[ShipmentFilters]
    ) -> AsyncIterator[models.DetailedShipment]:
        """Iterate over shipments in the order of their last change, page by page; `order="newest"`
        begins with the latest.

        `stalled_for`: an ISO 8601 duration (`P3D`). `details`: each with the place of its last scan
        and the order id.
        """
        chosen = checked(filters, ShipmentFilters)
        return self._items("/v1/shipments", models.DetailedShipmentPage, chosen, page_size)

    async def lookup(self, *numbers: str | tuple[str, str]) -> Sequence[models.LookedUpNumber]:
        """Look up at most 200 numbers, each alone or as `(carrier_id, tracking_number)`; the answer
        is in their order.
        """
        if not all(
            isinstance(number, str) or (isinstance(number, tuple) and len(number) == 2)
            for number in numbers
        ):
            # a list of two numbers would pass for a carrier and a number
            raise TypeError(
                "a number to look up is a text, or (carrier_id, tracking_number); of a list: lookup(*numbers)"
            )
        printed = [(None, number) if isinstance(number, str) else number for number in numbers]
        asked = [
            models.NumberToLookUp(tracking_number=number, carrier_id=carrier_id)
            for carrier_id, number in printed
        ]
        answer = await look_up_shipments.asyncio_detailed(
            client=self._core, body=models.NumbersToLookUp(numbers=asked)
        )
        return value(answer.parsed).items

    async def history(
        self,
        carrier_id: str,
        tracking_number: str,
        *,
        discriminator: str | None = None,
        as_of: datetime | None = None,
        personal: bool = False,
        page_size: int = 100,
    ) -> AsyncIterator[models.ShipmentEvent]:
        """Iterate over a shipment's events in timeline order."""
        cursor: str | None = None
        while True:
            answer = await get_shipment_history.asyncio_detailed(
                carrier_id,
                tracking_number,
                client=self._core,
                limit=page_size,
                cursor=cursor,
                discriminator=discriminator,
                as_of=as_of,
                include="personal" if personal else None,
            )
            page = value(answer.parsed)
            for event in page.items:
                yield event
            cursor = page.next_cursor
            if cursor is None:
                return

    async def audit(
        self,
        carrier_id: str,
        tracking_number: str,
        *,
        discriminator: str | None = None,
        as_of: datetime | None = None,
        personal: bool = False,
        cursor: str | None = None,
    ) -> models.Audit:
        """Return what is on record: events, transitions, conflicts, notifications with their
        attempts.
        """
        answer = await get_shipment_audit.asyncio_detailed(
            carrier_id,
            tracking_number,
            client=self._core,
            discriminator=discriminator,
            as_of=as_of,
            include="personal" if personal else None,
            cursor=cursor,
        )
        return value(answer.parsed)

    async def evidence(
        self,
        carrier_id: str,
        tracking_number: str,
        *,
        form: Literal["json", "html", "pdf", "zip"] = "pdf",
        discriminator: str | None = None,
        as_of: datetime | None = None,
        statement: Mapping[str, object] | None = None,
    ) -> bytes:
        """Return the evidence as a file. `statement`: what the merchant states for a case, as the
        API takes it.
        """
        params = {
            "discriminator": discriminator,
            "as_of": None if as_of is None else as_of.isoformat(),
        }
        response = await self._core.get_async_httpx_client().request(
            "GET" if statement is None else "POST",
            evidence_path(carrier_id, tracking_number),
            params={name: given for name, given in params.items() if given is not None},
            headers={"Accept": _MEDIA_TYPES[form]},
            json=statement,
        )
        return response.content

    async def references(self, carrier_id: str, tracking_number: str) -> models.ShipmentReferences:
        """Return the order id and the metadata that are attached to a number."""
        return value(
            (
                await get_shipment_references.asyncio_detailed(
                    carrier_id, tracking_number, client=self._core
                )
            ).parsed
        )

    async def set_references(
        self,
        carrier_id: str,
        tracking_number: str,
        *,
        order_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        parcel: tuple[str, str] | None = None,
        why: str | None = None,
    ) -> models.ShipmentReferences:
        """Attach an order id and metadata in place of all that was attached; the number need not
        have been scanned yet.

        `parcel`: the carrier and number of another carrier's parcel that this is.
        """
        stated = (
            None
            if parcel is None
            else models.ParcelNumber(carrier_id=parcel[0], tracking_number=parcel[1])
        )
        body = models.References(
            order_id=order_id,
            metadata=models.ReferencesMetadata.from_dict(metadata or {}),
            parcel=stated,
        )
        answer = await set_shipment_references.asyncio_detailed(
            carrier_id, tracking_number, client=self._core, body=body, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def expect(
        self, carrier_id: str, tracking_number: str, *, hours: int, why: str | None = None
    ) -> models.AwaitedShown:
        """Await a number: if nothing is heard of it within these hours, `shipment.never_heard` is
        sent.
        """
        body = models.AwaitedWithin(hours=hours)
        answer = await await_shipment.asyncio_detailed(
            carrier_id, tracking_number, client=self._core, body=body, statesvc_why=why or UNSET
        )
        return value(answer.parsed)

    async def stop_expecting(
        self, carrier_id: str, tracking_number: str, *, why: str | None = None
    ) -> None:
        """Await a number no longer."""
        await stop_awaiting_shipment.asyncio_detailed(
            carrier_id, tracking_number, client=self._core, statesvc_why=why or UNSET
        )

    async def erase(
        self, carrier_id: str, tracking_number: str, *, why: str
    ) -> models.ErasureAnswer:
        """Make a shipment's personal data unreadable (scope `admin`)."""
        body = models.ErasureRequest(why=why)
        return value(
            (
                await erase_shipment.asyncio_detailed(
                    carrier_id, tracking_number, client=self._core, body=body
                )
            ).parsed
        )
