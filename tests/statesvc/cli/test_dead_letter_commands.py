"""`statesvc dead-letters groups | show | replay | discard`, as a person and as a script calls
them.
"""

import pytest

from events.errors import Cause
from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell


@pytest.fixture
async def buried(event_log: LogBuilder) -> LogBuilder:
    """Bury five messages."""
    await bury_messages(event_log, *["not JSON"] * 5, cause=Cause.UNREADABLE)
    return event_log


async def test_a_dry_run_shows_the_plan_and_changes_nothing(
    here: Shell, buried: LogBuilder
) -> None:
    told = await here("dead-letters", "replay", "--cause", "unreadable", "--dry-run")
    assert "back into the inbox" in told
    assert "5 of 5 dead letters can be replayed" in told
    planned = await here.json("dead-letters", "replay", "--carrier", "ups", "--dry-run")
    assert (planned["remaining"], planned["plan"][0]["replayable"]) == (5, 5)
    assert "5 dead letters would be discarded" in await here(
        "dead-letters", "discard", "--carrier", "ups", "--why", "x", "--dry-run"
    )
    for table in ("inbox", "action"):
        assert await buried.rows(f"SELECT FROM statesvc.{table}") == []
    assert "No open dead letter matches." in await here(
        "dead-letters", "replay", "--carrier", "fedex", "--dry-run"
    )


@pytest.mark.usefixtures("buried")
async def test_a_few_are_replayed_then_the_rest(here: Shell) -> None:
    few = ("--cause", "unreadable", "--limit", "2", "--canary", "1")
    told, warned = await here.printed("dead-letters", "replay", *few)
    assert "2 dead letters replayed." in told
    assert "3 dead letters of the filter remain" in told
    assert "--canary has no effect" in warned
    done = await here.json("dead-letters", "replay", "--cause", "unreadable")
    assert (done["ended"], done["replayed"], done["refused"]) == ("done", 3, {})


@pytest.mark.usefixtures("buried")
async def test_a_dead_letter_is_shown_with_what_a_replay_means(here: Shell) -> None:
    assert "back into the inbox" in await here("dead-letters", "show", "1")
    assert "5 x not JSON" in await here("dead-letters", "groups")
    await here("dead-letters", "discard", "1", "--why", "their test system")
    assert "it was discarded" in await here("dead-letters", "show", "1")
    assert "it was discarded" in await here("dead-letters", "replay", "1", exit_code=1)
    await here("dead-letters", "discard", "--carrier", "ups", "--why", "their test system")
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
