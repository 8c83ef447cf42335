"""Two cells behind a real nginx: each carrier in its own, what is about no carrier in the one that is named, and one cell killed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from statesvc.cells.directory import read_directory
from tests.acceptance.cells_world import CELLS, Cells, two_cells
from tests.acceptance.service_maker import ServiceMaker
from tests.statesvc.api.stream.event_source import event_source

EVENT = {"kind": "scan", "status": "in_transit", "occurred_at": "2026-03-01T08:00:00Z"}


@pytest.fixture
async def cells(service_maker: ServiceMaker, tmp_path: Path) -> AsyncIterator[Cells]:
    services = {name: await service_maker(tmp_path / name) for name in CELLS}
    async with two_cells(services, tmp_path, carriers={"ups": "south"}) as running:
        yield running


async def ask(
    cells: Cells, method: str, path: str, *, cell: str | None = None, **options: Any
) -> tuple[int, Any]:
    headers = {} if cell is None else {"Statesvc-Cell": cell}
    async with cells.session.request(method, path, headers=headers, **options) as answer:
        return answer.status, await answer.json(content_type=None)


async def submit(cells: Cells, carrier_id: str, count: int, *, first: int = 0) -> None:
    """Submit shipments of this carrier, through the proxy."""
    for number in range(first, first + count):
        event = {
            **EVENT,
            "carrier_id": carrier_id,
            "event_id": f"n{number}",
            "tracking_number": f"{carrier_id}-{number}",
        }
        status, said = await ask(
            cells,
            "POST",
            "/v1/events",
            cell=read_directory(cells.file).cell_of(carrier_id),
            json=event,
        )
        assert status == 201, said


async def test_each_carrier_is_in_its_cell_and_a_killed_one_disturbs_no_other(cells: Cells) -> None:
    await submit(cells, "ups", 2)
    await submit(cells, "fedex", 3)

    # by carrier
    for carrier_id, name in (("ups", "south"), ("fedex", "north")):
        status, shipment = await ask(cells, "GET", f"/v1/shipments/{carrier_id}/{carrier_id}-1")
        assert (status, shipment["carrier_id"]) == (200, carrier_id)
        other = cells.services["north" if name == "south" else "south"]
        async with other.session.get(
            f"{other.api.url}/v1/shipments/{carrier_id}/{carrier_id}-1"
        ) as answer:
            assert answer.status == 404
    status, refusal = await ask(cells, "POST", "/v1/webhooks/nobody", data=b"{}")
    assert (status, refusal["code"]) == (404, "unknown_carrier"), "of the default cell"

    # by the cell that the call names
    for carrier_id, name, count in (("ups", "south", 2), ("fedex", "north", 3)):
        status, page = await ask(cells, "GET", "/v1/shipments", cell=name)
        assert (status, [one["carrier_id"] for one in page["items"]]) == (200, [carrier_id] * count)
        shipment_id = page["items"][0]["shipment_id"]
        assert (await ask(cells, "GET", f"/v1/shipments/{shipment_id}", cell=name))[0] == 200
        async with event_source(
            cells.session, "/v1/stream?after=-1", headers={"Statesvc-Cell": name}
        ) as source:
            assert {block.data["carrier_id"] for block in await source.next(count)} == {carrier_id}
    for path in ("/v1/shipments", "/v1/feed", "/v1/shipments/00000000-0000-0000-0000-000000000000"):
        for named in (None, "west"):
            status, refusal = await ask(cells, "GET", path, cell=named)
            assert (status, refusal["code"]) == (422, "cell_unnamed"), (
                "never a part as if it were all"
            )

    # keys are the cell's matter
    async with cells.session.get(
        "/v1/shipments", headers={"Authorization": "Bearer none", "Statesvc-Cell": "south"}
    ) as answer:
        assert answer.status == 401

    # one cell dies: its carriers are told to try again, the other's notice nothing
    south = cells.services["south"]
    url, ports = south.api.url, {process.role: process.port for process in south.roles}
    for process in south.roles:
        process.kill()
        await process.process.wait()
    async with cells.session.post("/v1/webhooks/ups", data=b"{}") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert (await answer.json(content_type=None))["code"] == "cell_unavailable"
    await submit(cells, "fedex", 1, first=90)
    code, printed, _ = await south.run("cell", "--file", str(cells.file), "check")
    assert (code, f"south: {url} does not answer" in printed, "is ready" in printed) == (
        1,
        True,
        True,
    ), printed
    for role, port in ports.items():
        await south.ready(await south.spawn(role, port=port))
    status, shipment = await ask(cells, "GET", "/v1/shipments/ups/ups-1")
    assert (status, shipment["carrier_id"]) == (200, "ups")
