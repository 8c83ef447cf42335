"""Two cells behind a real nginx: each carrier in its own, lists as one, and one cell killed."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from statesvc.cells.directory import read_directory
from tests.acceptance.cells_world import CELLS, Cells, two_cells
from tests.acceptance.processes import BOOTSTRAP_KEY
from tests.acceptance.service_maker import ServiceMaker
from tests.statesvc.api.stream.event_source import event_source

EVENT = {"kind": "scan", "status": "in_transit", "occurred_at": "2026-03-01T08:00:00Z"}


@pytest.fixture
async def cells(service_maker: ServiceMaker, tmp_path: Path) -> AsyncIterator[Cells]:
    services = {name: await service_maker(tmp_path / name) for name in CELLS}
    async with two_cells(services, tmp_path, carriers={"ups": "south"}) as running:
        yield running


async def ask(cells: Cells, method: str, path: str, **options: Any) -> tuple[int, Any]:
    async with cells.session.request(method, path, **options) as answer:
        return answer.status, await answer.json(content_type=None)


async def everything(cells: Cells, path: str, **query: str) -> tuple[list[dict[str, Any]], set[str]]:
    """All items over all pages, and the cells that some page lacked."""
    items: list[dict[str, Any]] = []
    partial: set[str] = set()
    while True:
        status, page = await ask(cells, "GET", path, params=query)
        assert status == 200, page
        items += page["items"]
        partial |= set(page["partial"])
        if page["next_cursor"] is None:
            return items, partial
        query["cursor"] = page["next_cursor"]


async def submit(cells: Cells, carrier_id: str, count: int, *, first: int = 0) -> None:
    """Through the cell's own API: shipments of this carrier."""
    service = cells.services[read_directory(cells.file).cell_of(carrier_id)]
    for number in range(first, first + count):
        event = {**EVENT, "carrier_id": carrier_id, "event_id": f"n{number}", "tracking_number": f"{carrier_id}-{number}"}
        async with service.session.post(f"{service.api.url}/v1/events", json=event) as answer:
            assert answer.status == 201, await answer.text()


async def logs_are_followed_and_events_divided(cells: Cells) -> None:
    """The lines of one request go to two cells, and come back by the feed with a place in each log."""
    events = [
        {**EVENT, "carrier_id": carrier_id, "event_id": f"line{number}", "tracking_number": f"L{number}"}
        for number, carrier_id in enumerate(["ups", "fedex", "ups", "nobody", "fedex"])
    ]
    body = b"\n\n".join(json.dumps(event).encode() for event in events) + b"\nno JSON"
    headers = {"Content-Type": "application/x-ndjson"}
    status, answered = await ask(cells, "POST", "/v1/events", data=body, headers=headers)
    verdicts = [(result["line"], result["verdict"]) for result in answered["results"]]
    assert (status, verdicts) == (
        200,
        [(1, "appended"), (3, "appended"), (5, "appended"), (7, "invalid"), (9, "appended"), (10, "invalid")],
    )
    status, alone = await ask(cells, "POST", "/v1/events", json=events[0])
    assert (status, alone["verdict"]) == (200, "duplicate")
    assert (await ask(cells, "POST", "/v1/events", data=b"no JSON", headers={"Content-Type": "application/json"}))[0] == 422

    after = ""
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not {"line0", "line1", "line2", "line4"} <= {item["entry"].get("event_id") for item in seen}:
            status, page = await ask(cells, "GET", "/v1/feed", params={"after": after, "limit": "6"})
            assert status == 200, page
            seen += page["items"]
            after = page["cursor"]
    indexes = {name: [item["index"] for item in seen if item["cell"] == name] for name in ("north", "south")}
    assert all(found == list(range(len(found))) for found in indexes.values()), "of each log every entry once, in its order"
    assert (await ask(cells, "GET", "/v1/feed", params={"after": "1.5"}))[0] == 400


async def people_find_the_cells_and_programs_the_contract(cells: Cells) -> None:
    async with cells.session.get("/cells") as answer:
        page = await answer.text()
        assert (answer.status, page.count("ready</td>"), "127.0.0.1" in page) == (200, 2, False), "no address"
    async with cells.session.get("/console", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/cells")
    async with cells.session.get("/cells/south", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"], answer.cookies["statesvc_cell"].value) == (303, "/console", "south")
    # the client's jar sends no cookies of an address
    async with cells.session.get("/console", headers={"Cookie": "statesvc_cell=south"}) as answer:
        assert (answer.status, answer.headers["Statesvc-Cell"], "password" in await answer.text()) == (200, "south", True)
    assert (await ask(cells, "GET", "/cells/west"))[0] == 404
    # a browser has no key: a ticket opens the streams of all cells, of what it was made for
    status, ticket = await ask(cells, "POST", "/v1/stream/tickets", json={"carrier_id": ["ups", "fedex"]})
    assert (status, ticket["partial"]) == (201, [])
    async with event_source(cells.session, f"{ticket['path']}&after=-1", headers={"Authorization": ""}) as source:
        assert source.answer.headers["Access-Control-Allow-Origin"] == "*"
        assert {block.data["cell"] for block in await source.next(17)} == {"north", "south"}
    for wrong in ("north=x.y,south=x.y", "x.y"):
        async with cells.session.get("/v1/stream", params={"ticket": wrong}, headers={"Authorization": ""}) as answer:
            assert answer.status in {401, 422}, wrong
    status, document = await ask(cells, "GET", "/openapi.json")
    assert (status, "/v1/cells" in document["paths"]) == (200, True)
    async with cells.session.get("/docs") as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
    async with cells.session.get(cells.gateway.roles[0].metrics_url) as answer:
        assert 'statesvc_gateway_cell_duration_seconds_count{role="gateway",cell="south",outcome="answered"}' in await answer.text()


async def portal_is_of_the_cell_that_the_link_names(cells: Cells) -> None:
    """A subscriber without a key sees what one cell sends; what has to be alike in all cells is refused there, in words."""
    links = "/v1/subscriptions/portal-links"
    status, made = await ask(cells, "POST", "/v1/subscriptions", json={"url": "https://shop.invalid/hook"})
    assert (status, made["partial"]) == (201, [])
    status, refusal = await ask(cells, "POST", links)
    assert (status, refusal["errors"][0]["pointer"], "north, south" in refusal["errors"][0]["detail"]) == (
        422,
        "/header/Statesvc-Cell",
        True,
    )
    status, link = await ask(cells, "POST", links, headers={"Statesvc-Cell": "south"})
    assert (status, link["path"].endswith("&cell=south")) == (201, True)

    async def visit(method: str, path: str, cookies: str = "", **options: Any) -> tuple[aiohttp.ClientResponse, str]:
        headers = {"Authorization": "", "Cookie": cookies}
        async with cells.session.request(method, path, headers=headers, allow_redirects=False, **options) as answer:
            return answer, html.unescape(await answer.text())

    answer, _ = await visit("GET", link["path"])
    assert (answer.status, "cell=" in answer.headers["Location"]) == (303, False)
    cookies = "statesvc_portal_cell=south"
    entered, _ = await visit("GET", answer.headers["Location"], cookies)
    assert (entered.status, entered.headers["Location"], entered.headers["Statesvc-Cell"]) == (303, "/portal", "south")
    cookies += f"; statesvc-portal={entered.cookies['statesvc-portal'].value}"
    _, listed = await visit("GET", "/portal", cookies)
    assert ("https://shop.invalid/hook" in listed, "cell south" in listed) == (True, True)
    style = re.search(r'href="(/console/static/[^"]+css)"', listed)
    assert style is not None
    assert (await visit("GET", style[1]))[0].content_type == "text/css", "without a login to a console"
    page = f"/portal/subscriptions/{made['id']}"
    _, shown = await visit("GET", page, cookies)
    token = re.search(r'name="form_token" value="([0-9a-f]{64})"', shown)
    assert token is not None
    assert ("rotate-secret" in shown, f"{page}/pause" in shown) == (False, False)
    form = {"form_token": token[1], "since": "2026-01-01T00:00", "grace_hours": "0"}
    assert (await visit("POST", f"{page}/replay", cookies, data=form))[0].status == 200
    assert (await visit("POST", f"{page}/test", cookies, data=form))[0].status == 303
    _, attempts = await ask(cells, "GET", f"/v1/subscriptions/{made['id']}/attempts", headers={"Statesvc-Cell": "south"})
    assert [one["test"] for one in attempts["items"]] == [True]
    before = await ask(cells, "GET", f"/v1/subscriptions/{made['id']}")
    for deed in ("pause", "resume", "rotate-secret"):
        refused, said = await visit("POST", f"{page}/{deed}", cookies, data=form)
        assert (refused.status, f"{deed} is for all cells together" in said) == (409, True)
    assert await ask(cells, "GET", f"/v1/subscriptions/{made['id']}") == before
    # a link is good in the cell that made it, whatever cell it is sent to
    other = cookies.replace("cell=south", "cell=north")
    for path, cookie in (("/portal", other), ("/portal", ""), (page, "statesvc_portal_cell=west"), (f"{link['path']}&cell=west", "")):
        refused, _ = await visit("GET", path.replace("&cell=south&", "&"), cookie)
        assert refused.status in {401, 404}, path
    assert await status_of_why(cells, f"/v1/subscriptions/{made['id']}/pause", b"\x84") == b"422", (
        "no printable character, so not done unexplained"
    )
    assert (await ask(cells, "DELETE", f"/v1/subscriptions/{made['id']}"))[0] == 204


async def status_of_why(cells: Cells, path: str, why: bytes) -> bytes:
    """Of a POST with a header that is not UTF-8, which no client library sends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", URL(cells.url).port)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BOOTSTRAP_KEY}\r\nContent-Length: 0\r\nStatesvc-Why: "
    writer.write(head.encode() + why + b"\r\n\r\n")
    async with asyncio.timeout(30):
        status = (await reader.readline()).split()[1]
    writer.close()
    return status


async def directory_is_compared(cells: Cells) -> None:
    code, printed, _ = await cells.gateway.run("cell", "check")
    assert (code, "works by this directory" in printed) == (0, True), printed
    await cells.gateway.command("cell", "assign", "dhl_unified", "south")
    code, printed, _ = await cells.gateway.run("cell", "check")
    assert (code, "works by epoch 1 of the directory, which is in epoch 2: restart it" in printed) == (1, True), printed


async def killed_cell_is_named(cells: Cells, of_the_other: str) -> None:
    for role in cells.services["south"].roles:
        role.kill()
        await role.process.wait()
    listed, partial = await everything(cells, "/v1/shipments")
    assert ({one["cell"] for one in listed}, len(listed), partial) == ({"north"}, 8, {"south"})
    status, queue = await ask(cells, "GET", "/v1/queue")
    assert (status, queue["partial"], "ups" in queue["carriers"]) == (200, ["south"], False)
    status, _ = await ask(cells, "GET", f"/v1/shipments/{of_the_other}")
    assert status == 200, "the cell that answers has it"
    status, problem = await ask(cells, "GET", "/v1/shipments/00000000-0000-0000-0000-000000000000")
    assert (status, problem["code"], problem["partial"]) == (503, "cell_unavailable", ["south"])
    lines = b"\n".join(
        json.dumps({**EVENT, "carrier_id": each, "event_id": "x", "tracking_number": "X"}).encode() for each in ("ups", "fedex")
    )
    status, problem = await ask(cells, "POST", "/v1/events", data=lines, headers={"Content-Type": "application/x-ndjson"})
    assert (status, problem["partial"]) == (503, ["south"])
    async with cells.session.post("/v1/webhooks/ups", data=b"{}") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert (await answer.json(content_type=None))["code"] == "cell_unavailable"
    status, shipment = await ask(cells, "GET", "/v1/shipments/fedex/fedex-3")
    assert (status, shipment["carrier_id"]) == (200, "fedex")


async def stream_goes_on_without_a_cell(cells: Cells, of_the_other: str) -> None:
    """A client is notified that a cell is away, has the other's changes meanwhile, and nothing twice or never when it is back."""
    south = cells.services["south"]
    ports = {role.role: role.port for role in south.roles}
    async with event_source(cells.session, "/v1/stream?after=-1") as source:
        seen = await source.next(17)
        await killed_cell_is_named(cells, of_the_other)
        await submit(cells, "fedex", 2, first=90)
        # what the other one still took before the stream noticed comes before the notice, or after it
        blocks = await source.next(4)
        changes = [block for block in blocks if block.name != "partial"]
        assert [(block.id, block.data) for block in blocks if block not in changes] == [(None, {"partial": ["south"]})]
        seen += changes
        assert {block.data["cell"] for block in changes} == {"north"}
    async with event_source(cells.session, headers={"Last-Event-ID": seen[-1].id}) as source:
        assert (await source.next())[0].data == {"partial": ["south"]}
        await asyncio.gather(*[south.ready(await south.spawn(role, port=port)) for role, port in ports.items()])
        assert (await source.next())[0].data == {"partial": []}
        await submit(cells, "ups", 2, first=90)
        seen += await source.next(2)
    for name in cells.services:
        _, page = await ask(cells, "GET", "/v1/feed/transitions", headers={"Statesvc-Cell": name})
        streamed = [block.data for block in seen if block.data["cell"] == name]
        assert streamed == [{**item, "cell": name} for item in page["items"]], "of each log every change once, in its order"
    _, page = await ask(cells, "GET", "/v1/feed/transitions")
    assert (len(page["items"]), page["cursor"], page["partial"]) == (len(seen), seen[-1].id, [])


async def test_each_carrier_is_in_its_cell_lists_are_one_and_a_killed_cell_is_named(cells: Cells) -> None:
    await asyncio.gather(submit(cells, "ups", 7), submit(cells, "fedex", 6))

    # by carrier, through the proxy
    for carrier_id, name in (("ups", "south"), ("fedex", "north")):
        status, shipment = await ask(cells, "GET", f"/v1/shipments/{carrier_id}/{carrier_id}-3")
        assert (status, shipment["carrier_id"]) == (200, carrier_id)
        other = cells.services["north" if name == "south" else "south"]
        async with other.session.get(f"{other.api.url}/v1/shipments/{carrier_id}/{carrier_id}-3") as answer:
            assert answer.status == 404
    status, refusal = await ask(cells, "POST", "/v1/webhooks/nobody", data=b"{}")
    assert (status, refusal["code"]) == (404, "unknown_carrier"), "of the default cell"

    # over cells, in the order of the last change, on pages of any size
    for limit in ("1", "4", "200"):
        listed, partial = await everything(cells, "/v1/shipments", limit=limit)
        assert [one["recorded_at"] for one in listed] == sorted(one["recorded_at"] for one in listed)
        assert {(one["carrier_id"], one["cell"]) for one in listed} == {("ups", "south"), ("fedex", "north")}
        assert (len(listed), len({one["shipment_id"] for one in listed}), partial) == (13, 13, set())
    found, _ = await everything(cells, "/v1/shipments", tracking_number="fedex-2")
    assert [one["tracking_number"] for one in found] == ["fedex-2"]
    status, alone = await ask(cells, "GET", f"/v1/shipments/{found[0]['shipment_id']}")
    assert (status, alone["cell"]) == (200, "north")

    # what waits; bodies that cannot be read become dead letters of either cell
    for carrier_id in ("ups", "fedex"):
        status, _ = await ask(
            cells, "POST", f"/v1/webhooks/{carrier_id}", data=b"no message", headers={"credential": "ups-test-credential"}
        )
        assert status == 200
    async with asyncio.timeout(30):
        while len(dead := (await everything(cells, "/v1/dead-letters", limit="1"))[0]) < 2:  # noqa: ASYNC110 - other processes make it happen
            await asyncio.sleep(0.05)
    assert {(one["carrier_id"], one["cell"]) for one in dead} == {("ups", "south"), ("fedex", "north")}
    status, queue = await ask(cells, "GET", "/v1/queue")
    assert (queue["dead_letters"], queue["cells"]["south"]["dead_letters"], queue["partial"]) == (2, 1, [])
    one = next(one for one in dead if one["cell"] == "south")
    path = f"/v1/dead-letters/{one['dead_letter_id']}"
    status, refusal = await ask(cells, "GET", path)
    assert (status, "Statesvc-Cell" in refusal["detail"]) == (422, True)
    assert (await ask(cells, "GET", path, headers={"Authorization": ""}))[0] == 401
    assert (await ask(cells, "PUT", path))[0] == 405
    assert (await ask(cells, "PUT", "/v1/cells"))[0] == 405
    assert (await ask(cells, "GET", "/v1/nothing"))[0] == 404
    status, shown = await ask(cells, "GET", path, headers={"Statesvc-Cell": "south"})
    assert (status, shown["carrier_id"]) == (200, "ups")

    await logs_are_followed_and_events_divided(cells)
    await directory_is_compared(cells)
    await people_find_the_cells_and_programs_the_contract(cells)
    await portal_is_of_the_cell_that_the_link_names(cells)

    # keys are the cells' matter, and so are wrong parameters
    assert (await ask(cells, "GET", "/v1/shipments", headers={"Authorization": "Bearer none"}))[0] == 401
    assert (await ask(cells, "GET", "/v1/shipments", params={"colour": "red"}))[0] == 422
    assert (await ask(cells, "GET", "/v1/shipments", params={"cursor": "none"}))[0] == 400
    assert (await ask(cells, "GET", "/v1/shipments", params={"limit": "0"}))[0] == 422

    # one cell dies: the other goes on, what is missing is said, and comes when it is back
    await stream_goes_on_without_a_cell(cells, found[0]["shipment_id"])
