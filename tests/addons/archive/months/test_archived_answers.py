"""Every answer about an archived month is what it was before, byte for byte."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from events.merkle.checkpoint import VerifierKey
from statesvc.addons.evidence.check_bundle import check
from tests.world.log_archivist import OLD, Archivist

NUMBERS = (*OLD, "1Z0007")


async def _get(api: Any, key: str, path: str, **query: Any) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key}"}
    async with api.client.get(path, headers=headers, params=query) as response:
        return response.status, await response.read()


async def _pages(api: Any, key: str, path: str, **query: Any) -> list[bytes]:
    """Return all pages of a list; a cursor that is no part of the items is one of the page."""
    pages: list[bytes] = []
    cursor: dict[str, str] = {}
    while True:
        status, page = await _get(api, key, path, **query, **cursor)
        assert status == 200, page
        pages.append(page)
        following = orjson.loads(page)["next_cursor"]
        if following is None:
            return pages
        cursor = {"after" if path == "/v1/feed" else "cursor": following}


async def _answers(api: Any, key: str, instants: list[datetime]) -> dict[str, Any]:
    found: dict[str, Any] = {"feed": await _pages(api, key, "/v1/feed", limit=7)}
    for number in NUMBERS:
        path = f"/v1/shipments/ups/{number}"
        found[path] = await _get(api, key, path)
        for call in ("history", "audit"):
            found[f"{path}/{call}"] = await _pages(
                api, key, f"{path}/{call}", **({"limit": 2} if call == "history" else {})
            )
        for instant in instants:
            for call in ("", "/history", "/audit"):
                found[f"{path}{call} {instant}"] = await _get(
                    api, key, f"{path}{call}", as_of=instant.isoformat()
                )
    found["list"] = await _get(api, key, "/v1/shipments")
    (count,) = (orjson.loads(found["feed"][0])["tree_size"],)
    found["proofs"] = [
        await _get(api, key, "/v1/proofs/inclusion", index=index) for index in range(count)
    ]
    found["consistency"] = await _get(api, key, "/v1/proofs/consistency", **{"from": 5})
    return found


@pytest.mark.usefixtures("two_months")
async def test_no_answer_changes_by_a_byte(archivist: Archivist, api: Any) -> None:
    instants = [
        sealed_at.astimezone(UTC)
        for (sealed_at,) in await archivist.log.rows("SELECT created_at FROM statesvc.checkpoint")
    ]
    instants += [datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)]
    key = await api.key("read audit")
    before = await _answers(api, key, instants)
    counts = await archivist.counts()
    await archivist.archived()
    assert (await archivist.counts())["event"] < counts["event"]
    after = await _answers(api, key, instants)
    assert after.keys() == before.keys()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.usefixtures("two_months")
async def test_evidence_of_an_archived_month_verifies_offline(
    archivist: Archivist, api: Any
) -> None:
    path = "/v1/shipments/ups/1Z0001/evidence"
    key = await api.key("audit")
    _, before = await _get(api, key, path)
    await archivist.archived()
    status, after = await _get(api, key, path)
    assert status == 200, after
    bundle = orjson.loads(after)
    assert check(after, [VerifierKey.parse(each) for each in bundle["log"]["keys"]]) == []
    assert bundle["entries"] == orjson.loads(before)["entries"]


@pytest.mark.usefixtures("two_months")
@pytest.mark.parametrize("number", OLD)
async def test_a_proof_is_found_by_event_id(archivist: Archivist, api: Any, number: str) -> None:
    key = await api.key("read")
    found = (
        "SELECT event_id FROM statesvc.event_key k JOIN statesvc.stream USING (shipment_id) WHERE"
        " number = '" + number + "' ORDER BY 1"
    )
    (event_id,), *_ = await archivist.log.rows(found)
    before = await _get(api, key, "/v1/proofs/inclusion", carrier_id="ups", event_id=event_id)
    await archivist.archived()
    assert (
        await _get(api, key, "/v1/proofs/inclusion", carrier_id="ups", event_id=event_id) == before
    )
    assert before[0] == 200
