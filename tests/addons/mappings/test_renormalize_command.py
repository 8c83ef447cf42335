"""`statesvc renormalize`: a carrier's history is read again, on the service's machine and from
afar, as the call does it.
"""

import json
from pathlib import Path
from typing import Any

from tests.addons.mappings.test_code_mappings import royalmail, statuses
from tests.world.api import Api
from tests.world.shell import Shell
from tests.world.worker_harness import WorkerHarness

_PATH = "/v1/carriers/royalmail/renormalize"


async def taught_after_three(harness: WorkerHarness, api: Api) -> None:
    await harness.push(
        *(royalmail(f"AB{number}GB", "EVZZ9") for number in range(3)), carrier_id="royalmail"
    )
    await harness.work()
    lesson = {"raw_code": "EVZZ9", "meaning": {"status": "lost"}, "why": "their list"}
    assert (
        await api.call("POST", "/v1/carriers/royalmail/mappings", scopes="ops", json=lesson)
    ).status == 201


async def entries(harness: WorkerHarness) -> list[Any]:
    rows = await harness.rows(
        "SELECT convert_from(canonical, 'UTF8') FROM statesvc.action WHERE verb = 'renormalize'"
        " ORDER BY batch_id"
    )
    return [json.loads(canonical) for (canonical,) in rows]


async def test_a_dry_run_changes_nothing_and_the_run_corrects(
    api: Api, royal: WorkerHarness, shell: Shell
) -> None:
    await taught_after_three(royal, api)
    printed = await shell("renormalize", "--carrier", "royalmail", "--dry-run")
    assert "3 messages with 3 events read again, 0 as before\n3 would be corrected" in printed
    assert await entries(royal) == []
    done = await shell.json("renormalize", "--carrier", "royalmail", "--why", "taught")
    assert (done["messages"], done["corrected"], done["transitions"]) == (3, 3, 3)
    assert done["moved"] == [{"from": "unknown", "to": "lost", "shipments": 3}]
    assert done["codes"] == [{"raw_type": None, "raw_code": "EVZZ9"}]
    assert await statuses(royal) == {"lost": 3}
    assert "1 code known now: `statesvc dead-letters replay --cause" in await shell(
        "renormalize", "--carrier", "royalmail", "--dry-run", "--read-by", "1"
    )
    replayed = await shell.json(
        "dead-letters", "replay", "--cause", "unknown_code", "--why", "taught"
    )
    assert (replayed["replayed"], replayed["remaining"]) == (1, 0)
    (entry,) = await entries(royal)
    assert (entry["actor"][:4], entry["target"]) == ("cli:", "carrier royalmail")
    assert (entry["details"]["why"], entry["details"]["corrected"], entry["details"]["done"]) == (
        "taught",
        3,
        True,
    )


async def test_by_http_and_by_command_it_leaves_the_same_entry(
    api: Api, royal: WorkerHarness, shell: Shell, tmp_path: Path
) -> None:
    await taught_after_three(royal, api)
    reply = await api.call(
        "POST", _PATH, scopes="ops", json={"why": "taught", "since": "2020-01-01T00:00:00Z"}
    )
    assert (reply.status, reply.body["corrected"], reply.body["next_cursor"]) == (200, 3, None)
    (tmp_path / "key").write_text(await api.key("ops"))
    afar = ("--url", str(api.client.make_url("/")), "--key-file", str(tmp_path / "key"))
    since = ("--since", "2020-01-01T00:00:00Z", "--why", "taught")
    await shell("renormalize", "--carrier", "royalmail", *since)
    await shell(*afar, "renormalize", "--carrier", "royalmail", *since)
    by_http, here, by_key = await entries(royal)
    assert by_http["actor"] == by_key["actor"] == f"key:{(await api.key('ops')).split('_')[1]}"
    assert here["actor"].startswith("cli:")
    assert here["details"] == by_key["details"] == by_http["details"] | {"corrected": 0}


async def test_what_the_carrier_does_not_have_is_wrong_use(
    api: Api, royal: WorkerHarness, shell: Shell
) -> None:
    assert "no such carrier_id" in await shell("renormalize", "--carrier", "nobody", exit_code=2)
    assert "royalmail has no version 9, but 1" in await shell(
        "renormalize", "--carrier", "royalmail", "--read-by", "9", exit_code=2
    )
    assert "--rate: " in await shell(
        "renormalize", "--carrier", "royalmail", "--rate", "0", exit_code=2
    )
    refused = await api.call("POST", _PATH, scopes="read", json={})
    assert refused.status == 403
    first = await api.call("POST", _PATH, scopes="ops", json={"cursor": "bm8"})
    assert (first.status, first.body["code"]) == (400, "invalid_cursor")
    assert await entries(royal) == []
