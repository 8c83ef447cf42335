"""A caller's program with the client: it knows nothing of us but `statesvc_client`.

URL, INGEST_KEY, READ_KEY in the environment.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

began = time.monotonic()
from statesvc_client import (  # noqa: E402
    AsyncClient,
    Client,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
)

IMPORT_SECONDS = time.monotonic() - began
URL = os.environ["URL"]
NUMBER = "1ZJOURNEY0000000002"
WAY = ("picked_up", "in_transit", "out_for_delivery", "delivered")
CHANGES = ("picked_up", "delivered")
"""Three events of one request are one message, and cause one change."""


def scan(day: int, status: str) -> dict[str, Any]:
    return {
        "carrier_id": "ups",
        "event_id": f"scan-{day}",
        "tracking_number": NUMBER,
        "occurred_at": f"2026-05-{day:02}T10:00:00+02:00",
        "status": status,
        "location": {"city": "Reno", "country": "US"},
    }


@contextmanager
def refused(kind: type[Exception], code: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        found = getattr(error, "code", None)
        if found != code:
            raise
    else:
        raise AssertionError(f"no {kind.__name__}")


def submit() -> None:
    first, *others = (scan(day, status) for day, status in enumerate(WAY, 1))
    with Client(URL, key=os.environ["INGEST_KEY"]) as client:
        assert client.events.submit(first).verdict == "appended"
        assert client.events.submit(first).verdict == "duplicate"
        assert [line.verdict for line in client.events.submit_many(others)] == ["appended"] * 3
        with refused(ConflictError, "conflict"):
            client.events.submit(first | {"status": "delivered"})
        client.shipments.set_references(
            "ups", NUMBER, order_id="Order 4711", metadata={"shop": "eu"}
        )


def ask() -> None:
    with Client(URL, key=os.environ["READ_KEY"]) as client:
        (found,) = client.shipments.list(tracking_number=f" {NUMBER.lower()} ")
        (ordered,) = client.shipments.list(reference="order 4711")
        shipment = client.shipments.get("ups", NUMBER)
        assert (
            found.shipment_id
            == ordered.shipment_id
            == shipment.shipment_id
            == client.shipments.get_by_id(shipment.shipment_id).shipment_id
        )
        assert (shipment.status, shipment.version) == ("delivered", len(WAY))
        assert (
            tuple(event.status for event in client.shipments.history("ups", NUMBER, page_size=3))
            == WAY
        )
        assert client.shipments.references("ups", NUMBER).order_id == "Order 4711"
        with refused(NotFoundError, "not_found"):
            client.shipments.get("ups", "1ZNEVER")
        with refused(ForbiddenError, "missing_scope"):
            client.shipments.audit("ups", NUMBER)
    with Client(URL, key="wrong") as stranger, refused(UnauthorizedError, "unauthenticated"):
        stranger.shipments.get("ups", NUMBER)


async def follow() -> None:
    """Read the past by pages, then the stream from there; taken up again behind any change."""
    async with AsyncClient(URL, key=os.environ["READ_KEY"]) as client:
        async with asyncio.timeout(60):
            seen = []
            async for change in client.stream(after="-1", carriers=["ups"]):
                seen.append(change)
                if change.transition.to == "delivered":
                    break
            assert tuple(change.transition.to for change in seen) == CHANGES
            again = client.stream(after=seen[0].id)
            assert (await anext(again)).id == seen[1].id
            await again.aclose()
        pages = [page async for page in client.log.transition_pages(page_size=1)]
        assert tuple(change.to for page in pages for change in page.items) == CHANGES
        assert [
            shipment.status async for shipment in client.shipments.list(status="delivered")
        ] == ["delivered"]


if __name__ == "__main__":
    submit()
    ask()
    asyncio.run(follow())
    sys.stdout.write(f"{IMPORT_SECONDS:.3f}\n")
