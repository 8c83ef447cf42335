"""Dead letters on the console: groups, one next to its masked body, plan, replay in parts,
discard.
"""

import re

import orjson

from tests.statesvc.api.test_dead_letter_replay import bury_messages, open_dead_letters, rows
from tests.world.api import Api
from tests.world.console import ConsoleClient, words

LIST = "/console/dead-letters"
GROUP = f"{LIST}/group?kind=message&carrier_id=ups&cause=normalizer_failed"


async def _readings(api: Api) -> list[dict[str, object]]:
    found = await rows(
        api, "SELECT canonical FROM statesvc.action WHERE verb = 'read_personal' ORDER BY batch_id"
    )
    return [orjson.loads(canonical)["details"] for (canonical,) in found]


async def _message_page(console: ConsoleClient, dead_letter_id: int) -> str:
    page = await (await console.get(f"{LIST}/{dead_letter_id}")).text()
    link = re.search(r'href="(/console/messages/[^"]+)"', page)
    assert link is not None
    return link[1]


async def test_groups_lead_to_a_sample_whose_body_is_masked(console: ConsoleClient) -> None:
    ids = await bury_messages(
        console.api, "KeyError in ups line 7", "KeyError in ups line 7", "<script>alert(1)</script>"
    )
    await console.log_in("ops audit pii")
    page = await (await console.get(LIST)).text()
    assert GROUP.replace("&", "&amp;") in page
    assert "<script>alert" not in page
    text = words(page)
    assert "our reader failed normalizer_failed" in text
    assert "yes, " in text, "still coming"
    assert "2 x KeyError in ups line 7" in text
    assert f"/console/dead-letters/{ids[-1]}" in page
    assert "KeyError in ups line 7" in await console.text(GROUP)
    newest = await console.text(f"{LIST}/{ids[-1]}")
    assert "back into the inbox" in newest
    masked = await console.text(await _message_page(console, ids[-1]))
    assert "Structure alone: every value is masked." in masked
    assert "2<script>" not in masked
    assert await _readings(console.api) == []


async def test_a_body_is_read_with_a_reason_which_is_on_record(console: ConsoleClient) -> None:
    (dead_letter_id,) = await bury_messages(console.api, "hello <b>you</b>")
    await console.log_in("ops audit pii")
    path = await _message_page(console, dead_letter_id)
    token = await console.form_token(LIST)
    unsaid = await (await console.post(path, form_token=token, why=" ")).text()
    assert "say what for" in unsaid
    assert "0 hello" not in unsaid
    assert await _readings(console.api) == []
    page = await (await console.post(path, form_token=token, why="ticket 7")).text()
    assert "0 hello &lt;b&gt;you&lt;/b&gt;" in page
    (reading,) = await _readings(console.api)
    assert reading["why"] == "ticket 7"
    assert "0 hello" not in await console.text(path)


async def test_a_body_is_not_for_a_key_without_both_scopes(console: ConsoleClient) -> None:
    (dead_letter_id,) = await bury_messages(console.api, "hello")
    for scopes in ("ops audit", "ops pii"):
        await console.log_in(scopes)
        path = await _message_page(console, dead_letter_id)
        token = await console.form_token(LIST.replace("dead-letters", "queue"))
        refused = await console.post(path, form_token=token, why="curious")
        assert refused.status == 403
        assert "hello" not in await refused.text()
    assert await _readings(console.api) == []


async def test_a_few_are_replayed_then_the_rest_under_one_reason(console: ConsoleClient) -> None:
    await bury_messages(console.api, "a", "b", "c", "d", "e")
    await console.log_in("ops", may_change="on")
    path = f"{LIST}/replay"
    token = await console.form_token(path)
    assert "5 of 5 dead letters can be replayed, oldest first." in await console.preview(
        path, why="repaired", kind="message"
    )
    posted = {"why": "repaired", "kind": "message", "limit": "2"}
    first = await (await console.post(path, form_token=token, step="do", **posted)).text()
    assert "3 dead letters of the filter remain" in words(first)
    assert "hx-trigger" not in first.partition('id="progress"')[2].partition("</section>")[0]
    assert len(await open_dead_letters(console.api)) == 3
    done = await console.go_on(path, why="repaired", kind="message", limit="2")
    assert "3 dead letters replayed." in done
    assert await open_dead_letters(console.api) == []
    assert "No open dead letter matches." in await console.preview(
        path, why="again", kind="message"
    )
    found = await rows(console.api, "SELECT DISTINCT why FROM statesvc.dead_letter")
    assert found == [("repaired",)]


async def test_a_filter_must_mean_something(console: ConsoleClient) -> None:
    await bury_messages(console.api, "a")
    await console.log_in("ops", may_change="on")
    for action in ("replay", "discard"):
        assert "at least one of carrier_id, cause and kind" in await console.preview(
            f"{LIST}/{action}", why="all"
        )
    refused = await console.preview(f"{LIST}/replay", why="x", kind="message", limit="many")
    assert "limit" in refused


async def test_a_group_is_discarded(console: ConsoleClient) -> None:
    await bury_messages(console.api, "a", "b")
    await console.log_in("ops", may_change="on")
    assert "2 dead letters would be discarded, for good" in await console.preview(
        f"{LIST}/discard", why="noise", carrier_id="ups"
    )
    assert "2 dead letters discarded." in await console.act(
        f"{LIST}/discard", why="noise", carrier_id="ups"
    )
    assert await open_dead_letters(console.api) == []
    assert "noise" in await console.text("/console/record?verb=discard")


async def test_a_cause_of_a_foreign_worker_has_a_group_too(console: ConsoleClient) -> None:
    await console.api.carriers.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id, detail)"
        " VALUES ('message', 'bad_luck', 'ups', statesvc.clock(), gen_random_uuid(), '')"
    )
    await console.log_in("ops audit pii")
    page = await (await console.get(LIST)).text()
    assert 'group?kind=message&amp;carrier_id=ups"' in page
    assert "bad_luck" in await console.text(f"{LIST}/group?kind=message&carrier_id=ups")
    assert (await console.get(f"{LIST}/99")).status == 404
    assert (await console.get(f"{LIST}/x")).status == 422
