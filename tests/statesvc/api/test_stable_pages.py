"""No list changes under a cursor: what was there when its first page was read comes once, whatever
comes in while the others are read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import count
from typing import Any, Final, NamedTuple

import pytest

from events.vocabulary import Status
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.health.notices import Notice, NoticeKind, write_notices
from tests.openapi_document import document
from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.api import Api, Statement
from tests.world.deliver import deliver

NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Planter:
    """Makes one more of each kind."""

    api: Api
    scan: Statement
    numbers: "count[int]"

    async def shipment(self) -> None:
        await self.api.carriers.push(self.scan(f"1Z{next(self.numbers)}", Status.IN_TRANSIT))

    async def event(self) -> None:
        await self.api.carriers.push(
            self.scan("1ZONE", Status.IN_TRANSIT, minutes=next(self.numbers))
        )

    async def late_parcel(self) -> None:
        number = next(self.numbers)
        promised = {"estimated_delivery": date(2026, 3, 2).isoformat()}
        await self.api.carriers.push(self.scan(f"1ZL{number}", Status.IN_TRANSIT, **promised))
        await self.api.carriers.push(
            self.scan(f"1ZL{number}", Status.DELIVERED, minutes=5 * 24 * 60)
        )

    async def dead_letter(self) -> None:
        await bury_messages(self.api, f'"{next(self.numbers)}"')

    async def legal_hold(self) -> None:
        number = f"1ZH{next(self.numbers)}"
        await self.api.carriers.push(self.scan(number, Status.IN_TRANSIT))
        await self._post("/v1/legal-holds", carrier_id="ups", tracking_number=number, why="case 7")

    async def awaited(self) -> None:
        path = f"/v1/shipments/ups/1ZW{next(self.numbers)}/awaited"
        assert (await self.api.call("PUT", path, scopes="admin", json={"hours": 48})).status == 200

    async def notice(self) -> None:
        notice = Notice(
            kind=NoticeKind.FAILING, target=f"subscription {next(self.numbers)}", details={}
        )
        await write_notices(self.api.connection, [notice], now=NOW)

    async def subscription(self) -> None:
        await self._post("/v1/subscriptions", url=f"https://receiver-{next(self.numbers)}.invalid/")

    async def mapping(self) -> None:
        await self._post(
            "/v1/carriers/ups/mappings",
            raw_code=f"EV{next(self.numbers)}",
            meaning={"kind": "info"},
            why="x",
            force=True,
        )

    async def key(self) -> None:
        await self._post("/v1/keys", name=f"team {next(self.numbers)}", scopes=["read"])

    async def attempt(self) -> None:
        if not (await self.api.get("/v1/subscriptions", scopes="admin")).body["items"]:
            await self.subscription()
        await self.shipment()
        await deliver(self.api.connection, self.api.keyring, AttemptOutcome.DELIVERED, 204)

    async def difference(self) -> None:
        number = next(self.numbers)
        await self.api.carriers.execute(
            "INSERT INTO statesvc.rollout_diff (recorded_at, carrier_id, stable, candidate,"
            " message_id, event_id, field) VALUES (now(), 'ups', '1', '2', gen_random_uuid(), %s,"
            " 'status')",
            [f"e{number}"],
        )

    async def _post(self, path: str, **body: Any) -> None:
        reply = await self.api.call("POST", path, scopes="admin", json=body)
        assert reply.status == 201, reply.body


class ListCall(NamedTuple):
    """`key`: what tells its items apart."""

    path: str
    plant: Callable[[Planter], Awaitable[None]]
    key: str


LISTS: Final = {
    "list_shipments": ListCall("/v1/shipments", Planter.shipment, "shipment_id"),
    "get_shipment_history": ListCall("/v1/shipments/ups/1ZONE/history", Planter.event, "event_id"),
    "list_late_parcels": ListCall(
        "/v1/reports/promises/late?since=2026-01-01", Planter.late_parcel, "tracking_number"
    ),
    "list_dead_letters": ListCall("/v1/dead-letters", Planter.dead_letter, "dead_letter_id"),
    "list_legal_holds": ListCall("/v1/legal-holds", Planter.legal_hold, "tracking_number"),
    "list_awaited_numbers": ListCall("/v1/awaited-numbers", Planter.awaited, "number"),
    "list_actions": ListCall("/v1/actions", Planter.legal_hold, "recorded_at"),
    "list_notices": ListCall("/v1/notices", Planter.notice, "notice_id"),
    "list_subscriptions": ListCall("/v1/subscriptions", Planter.subscription, "id"),
    "list_attempts": ListCall(
        "/v1/subscriptions/{subscription_id}/attempts", Planter.attempt, "webhook_id"
    ),
    "list_notifications": ListCall(
        "/v1/subscriptions/{subscription_id}/notifications", Planter.attempt, "webhook_id"
    ),
    "list_code_mappings": ListCall("/v1/carriers/ups/mappings", Planter.mapping, "revision"),
    "list_mapped_codes": ListCall("/v1/code-mappings", Planter.mapping, "revision"),
    "list_api_keys": ListCall("/v1/keys", Planter.key, "key_id"),
    "list_rollout_diffs": ListCall("/v1/rollouts/ups/diffs", Planter.difference, "diff_id"),
}
ELSEWHERE: Final = {"get_shipment_audit": "tests/statesvc/api/test_audit.py"}
"""One answer in parts, no list of items."""


def test_every_list_with_a_cursor_is_here() -> None:
    calls = [calls["get"] for calls in document()["paths"].values() if "get" in calls]
    paged = {
        call["operationId"]
        for call in calls
        if any(given["name"] == "cursor" for given in call.get("parameters", ()))
    }
    assert paged == LISTS.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("name", LISTS)
async def test_what_was_there_comes_once_though_more_comes_in(
    api: Api, scan: Statement, name: str
) -> None:
    path, plant, key = LISTS[name]
    planter = Planter(api, scan, count(10))
    for _ in range(4):
        await plant(planter)
    if "{subscription_id}" in path:
        (subscription,) = (await api.get("/v1/subscriptions", scopes="admin")).body["items"]
        path = path.format(subscription_id=subscription["id"])
    before = await _page(api, path, limit=100)
    assert len(before["items"]) >= 4
    page = await _page(api, path, limit=2)
    seen = page["items"]
    while page["next_cursor"] is not None:
        if len(seen) < 6:
            await plant(planter)
        page = await _page(api, path, limit=2, cursor=page["next_cursor"])
        seen += page["items"]
    keys = [item[key] for item in seen]
    assert len(set(keys)) == len(keys), "an item came twice"
    assert {item[key] for item in before["items"]} <= set(keys), "an item was missed"


async def _page(api: Api, path: str, **query: Any) -> dict[str, Any]:
    path, _, given = path.partition("?")
    asked = dict(part.split("=") for part in given.split("&") if part) | {
        name: str(value) for name, value in query.items()
    }
    reply = await api.get(path, scopes="admin", params=asked)
    assert reply.status == 200, reply.body
    body: dict[str, Any] = reply.body
    return body
