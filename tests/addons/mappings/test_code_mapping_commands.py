"""Codes are mapped and histories read again by command: previewed, taught, corrected, taken back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from statesvc.database.queries import queries
from tests.addons.mappings.test_code_mappings import australiapost, easypost, royalmail, statuses
from tests.world.api import Api
from tests.world.shell import Shell
from tests.world.worker_harness import WorkerHarness

CODE = ("--code", "EVZZ9")


async def test_what_the_list_of_unknown_codes_prints_is_taken_and_it_prints_the_command(
    royal: WorkerHarness, shell: Shell
) -> None:
    await royal.push(easypost("EZ1", "in_transit", "seen"), carrier_id="easypost")
    await royal.push(royalmail("AB1GB", "EVZZ9"), carrier_id="royalmail")
    await royal.push(australiapost("33AB1", "Handed to the robot"), carrier_id="australiapost")
    await royal.work()
    printed = await shell("carriers", "unmapped")
    assert "in_transit/seen" in printed
    assert (
        "  statesvc carriers map easypost --type in_transit --code seen --status STATUS\n"
        in printed
    )
    assert "  statesvc carriers map royalmail --code EVZZ9 --status STATUS\n" in printed
    assert "  statesvc carriers map australiapost --text TEXT --status STATUS\n" in printed
    said = ("--text", "handed  to the ROBOT", "--status", "delivered")
    assert "1 event of 1 shipment" in await shell("carriers", "map", "australiapost", *said)
    lesson = ("carriers", "map", "easypost", "--code", "in_transit/seen", "--status", "delivered")
    assert "1 event of 1 shipment" in await shell(*lesson)
    assert "--why is missing" in await shell(*lesson, "--yes", exit_code=2)
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 0
    await shell(*lesson, "--why", "their list", "--yes")
    assert "delivered" in await shell("carriers", "mappings")
    await shell("carriers", "renormalize", "easypost", "1", "--why", "their list")
    assert await royal.rows("SELECT raw_type, raw_code FROM statesvc.code_mapping") == [
        ("in_transit", "seen")
    ]
    assert (
        await royal.value("SELECT status FROM statesvc.shipment WHERE carrier_id = 'easypost'")
        == "delivered"
    )
    await shell(
        "carriers", "unmap", "easypost", "--code", "in_transit/seen", "--why", "wrong", "--yes"
    )


async def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    royal: WorkerHarness, shell: Shell
) -> None:
    for arguments, why in (
        (("royalmail", "--status", "lost"), "name the code"),
        (("royalmail", *CODE), "meaning"),
        (("royalmail", *CODE, "--info", "--reason", "held"), "a reason belongs to a scan"),
        (("royalmail", "--code", "text", "--info"), "stands for any text"),
        (("royalmail", *CODE, "--info", "--renormalize"), "carriers renormalize"),
        (("nobody", *CODE, "--info"), "no such carrier"),
    ):
        assert why in await shell("carriers", "map", *arguments, exit_code=2)
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 0


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


MESSAGES: Final = 20_000
CARRIERS: Final = 10
LIMIT: Final = 50
FILL: Final = """
INSERT INTO statesvc.message
SELECT uuidv7(), statesvc.clock(), statesvc.clock(), 1, 1, 'c' || mod(n, %(carriers)s), 'applied', 'c@1', 'w', '{}', NULL
FROM generate_series(1, %(messages)s) AS n
"""


def rows_read(plan: dict[str, Any]) -> Iterator[float]:
    """Yield the rows of each scan in a plan, those that a filter removed included."""
    if "Relation Name" in plan:
        yield plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    for inner in plan.get("Plans", ()):
        yield from rows_read(inner)


async def test_a_page_reads_what_lies_next(database: Any) -> None:
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as connection:
        await connection.execute(FILL, {"messages": MESSAGES, "carriers": CARRIERS})
        await connection.execute("ANALYZE statesvc.message")
        middle = "SELECT message_id FROM statesvc.message ORDER BY message_id OFFSET %s LIMIT 1"
        (after,) = await (await connection.execute(middle, (MESSAGES // 2,))).fetchone() or (
            UUID(int=0),
        )
        query = (
            "EXPLAIN (ANALYZE, FORMAT json) "
            + queries("statesvc.addons.mappings", "history_reread")["next_messages"]
        )
        asked = {
            "carrier_id": "rare",
            "since": None,
            "read_by": None,
            "after": after,
            "limit": LIMIT,
        }
        (found,) = await (await connection.execute(query, asked)).fetchone() or ([],)
    plan = found[0]["Plan"]
    assert plan["Actual Rows"] == LIMIT
    assert sum(rows_read(plan)) == LIMIT
