"""`statesvc dead-letters groups | show | replay | discard`, as a person and as a script calls
them.
"""

import json
from typing import Any

from psycopg import AsyncConnection

from events.errors import Cause
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.ingress.group_commit import put
from statesvc.queue.claim import Burial, ClaimRequest, bury, claim
from tests.world.database import Database
from tests.world.shell import MASTER_KEY, Shell


async def bury_messages(database: Database, count: int) -> None:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        await put(
            connection,
            [seal_message(keyring, "ups", f"{number}".encode(), "{}") for number in range(count)],
        )
        claimed = (
            await claim(
                connection,
                ClaimRequest(
                    worker="worker-1", limit=500, lease_seconds=30, bytes_max=1 << 20, sweep=True
                ),
            )
        ).messages
        burials = [
            Burial(message_id=message.message_id, cause=Cause.UNREADABLE, detail="not JSON")
            for message in claimed
        ]
        await bury(connection, claimed[0].token, burials)


async def lines(shell: Shell, *arguments: str, exit_code: int = 0) -> list[Any]:
    return [
        json.loads(line)
        for line in (await shell(*arguments, "--json", exit_code=exit_code)).splitlines()
        if line.startswith("{")
    ]


async def value(database: Database, query: str) -> Any:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        row = await (await connection.execute(query.encode())).fetchone()
        assert row is not None
        return row[0]


async def test_a_dry_run_shows_the_plan_and_changes_nothing(
    database: Database, here: Shell
) -> None:
    assert "No open dead letter matches." in await here(
        "dead-letters", "replay", "--carrier", "ups", "--dry-run"
    )
    await bury_messages(database, 3)
    told = await here(
        "dead-letters", "replay", "--carrier", "ups", "--cause", "unreadable", "--dry-run"
    )
    assert "back into the inbox" in told
    assert "3 of 3 dead letters can be replayed" in told
    planned = await here.json("dead-letters", "replay", "--carrier", "ups", "--dry-run")
    assert (planned["remaining"], planned["plan"][0]["replayable"]) == (3, 3)
    assert await value(database, "SELECT count(*) FROM statesvc.inbox") == 0
    assert await value(database, "SELECT count(*) FROM statesvc.action") == 0


async def test_a_few_are_replayed_then_the_rest(database: Database, here: Shell) -> None:
    await bury_messages(database, 5)
    few = ("--cause", "unreadable", "--limit", "2", "--canary", "1")
    told, warned = await here.printed("dead-letters", "replay", *few)
    assert "2 dead letters replayed." in told
    assert "3 dead letters of the filter remain" in told
    assert "--canary has no effect" in warned
    assert await value(database, "SELECT count(*) FROM statesvc.inbox") == 2
    done = await here.json("dead-letters", "replay", "--cause", "unreadable")
    assert (done["ended"], done["replayed"], done["refused"]) == ("done", 3, {})


async def test_a_dead_letter_is_shown_with_what_a_replay_means(
    database: Database, here: Shell
) -> None:
    await bury_messages(database, 1)
    assert "back into the inbox" in await here("dead-letters", "show", "1")
    groups = await here.json("dead-letters", "groups")
    assert [(group["cause"], group["dead_letters"]) for group in groups["items"]] == [
        ("unreadable", 1)
    ]
    assert "1 x not JSON" in await here("dead-letters", "groups")
    await here("dead-letters", "discard", "1", "--why", "their test system")
    assert "it was discarded" in await here("dead-letters", "show", "1")
    assert "it was discarded" in await here("dead-letters", "replay", "1", exit_code=1)
    assert "No dead letter is open." in await here("dead-letters", "groups")


async def test_wrong_use_is_refused(here: Shell) -> None:
    for arguments, told in (
        (("replay",), "name the dead letters"),
        (("replay", "1", "--carrier", "ups"), "not both"),
        (("discard", "1", "--why", " "), "say why"),
        *(
            ((action, "--carrier", "dhl_expres", "--why", "x"), "did you mean `dhl_express`?")
            for action in ("replay", "discard")
        ),
        *(
            ((action, "--carrier", "dhl_expres"), "did you mean `dhl_express`?")
            for action in ("list", "groups")
        ),
    ):
        assert told in await here("dead-letters", *arguments, exit_code=2), arguments
