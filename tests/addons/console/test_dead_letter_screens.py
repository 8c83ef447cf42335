"""Dead letters on the console: groups, one next to its masked body, plan, replay in parts,
discard.
"""

import re

import orjson

from tests.statesvc.api.test_dead_letter_replay import bury_messages, open_dead_letters, rows
from tests.world.api import Api
from tests.world.console import Tab, words

LIST = "/console/dead-letters"
GROUP = f"{LIST}/group?kind=message&carrier_id=ups&cause=normalizer_failed"


async def _readings(api: Api) -> list[dict[str, object]]:
    found = await rows(
        api, "SELECT canonical FROM statesvc.action WHERE verb = 'read_personal' ORDER BY batch_id"
    )
    return [orjson.loads(canonical)["details"] for (canonical,) in found]


async def _message_page(tab: Tab, dead_letter_id: int) -> str:
    page = await (await tab.get(f"{LIST}/{dead_letter_id}")).text()
    link = re.search(r'href="(/console/messages/[^"]+)"', page)
    assert link is not None
    return link[1]


async def test_groups_lead_to_a_sample_whose_body_is_masked(tab: Tab) -> None:
    ids = await bury_messages(
        tab.api, "KeyError in ups line 7", "KeyError in ups line 7", "<script>alert(1)</script>"
    )
    await tab.log_in("ops audit pii")
    page = await (await tab.get(LIST)).text()
    assert GROUP.replace("&", "&amp;") in page
    assert "<script>alert" not in page
    text = words(page)
    assert "our reader failed normalizer_failed" in text
    assert "yes, " in text, "still coming"
    assert "2 x KeyError in ups line 7" in text
    assert f"/console/dead-letters/{ids[-1]}" in page
    assert "KeyError in ups line 7" in await tab.text(GROUP)
    newest = await tab.text(f"{LIST}/{ids[-1]}")
    assert "back into the inbox" in newest
    masked = await tab.text(await _message_page(tab, ids[-1]))
    assert "Structure alone: every value is masked." in masked
    assert "2<script>" not in masked
    assert await _readings(tab.api) == []


async def test_a_body_is_read_with_a_reason_which_is_on_record(tab: Tab) -> None:
    (dead_letter_id,) = await bury_messages(tab.api, "hello <b>you</b>")
    await tab.log_in("ops audit pii")
    path = await _message_page(tab, dead_letter_id)
    token = await tab.form_token(LIST)
    unsaid = await (await tab.post(path, form_token=token, why=" ")).text()
    assert "say what for" in unsaid
    assert "0 hello" not in unsaid
    assert await _readings(tab.api) == []
    page = await (await tab.post(path, form_token=token, why="ticket 7")).text()
    assert "0 hello &lt;b&gt;you&lt;/b&gt;" in page
    (reading,) = await _readings(tab.api)
    assert reading["why"] == "ticket 7"
    assert "0 hello" not in await tab.text(path)


async def test_a_body_is_not_for_a_key_without_both_scopes(tab: Tab) -> None:
    (dead_letter_id,) = await bury_messages(tab.api, "hello")
    for scopes in ("ops audit", "ops pii"):
        await tab.log_in(scopes)
        path = await _message_page(tab, dead_letter_id)
        token = await tab.form_token(LIST.replace("dead-letters", "queue"))
        refused = await tab.post(path, form_token=token, why="curious")
        assert refused.status == 403
        assert "hello" not in await refused.text()
    assert await _readings(tab.api) == []


async def test_a_few_are_replayed_then_the_rest_under_one_reason(tab: Tab) -> None:
    await bury_messages(tab.api, "a", "b", "c", "d", "e")
    await tab.log_in("ops", may_change="on")
    path = f"{LIST}/replay"
    token = await tab.form_token(path)
    assert "5 of 5 dead letters can be replayed, oldest first." in await tab.preview(
        path, why="repaired", kind="message"
    )
    posted = {"why": "repaired", "kind": "message", "limit": "2"}
    first = await (await tab.post(path, form_token=token, step="do", **posted)).text()
    assert "3 dead letters of the filter remain" in words(first)
    assert "hx-trigger" not in first.partition('id="progress"')[2].partition("</section>")[0]
    assert len(await open_dead_letters(tab.api)) == 3
    done = await tab.go_on(path, why="repaired", kind="message", limit="2")
    assert "3 dead letters replayed." in done
    assert await open_dead_letters(tab.api) == []
    assert "No open dead letter matches." in await tab.preview(path, why="again", kind="message")
    found = await rows(tab.api, "SELECT DISTINCT why FROM statesvc.dead_letter")
    assert found == [("repaired",)]


async def test_a_filter_must_mean_something(tab: Tab) -> None:
    await bury_messages(tab.api, "a")
    await tab.log_in("ops", may_change="on")
    for action in ("replay", "discard"):
        assert "at least one of carrier_id, cause and kind" in await tab.preview(
            f"{LIST}/{action}", why="all"
        )
    refused = await tab.preview(f"{LIST}/replay", why="x", kind="message", limit="many")
    assert "limit" in refused


async def test_a_group_is_discarded(tab: Tab) -> None:
    await bury_messages(tab.api, "a", "b")
    await tab.log_in("ops", may_change="on")
    assert "2 dead letters would be discarded, for good" in await tab.preview(
        f"{LIST}/discard", why="noise", carrier_id="ups"
    )
    assert "2 dead letters discarded." in await tab.act(
        f"{LIST}/discard", why="noise", carrier_id="ups"
    )
    assert await open_dead_letters(tab.api) == []
    assert "noise" in await tab.text("/console/record?verb=discard")


async def test_a_cause_of_a_foreign_worker_has_a_group_too(tab: Tab) -> None:
    await tab.api.carriers.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, message_id, detail)"
        " VALUES ('message', 'bad_luck', 'ups', statesvc.clock(), gen_random_uuid(), '')"
    )
    await tab.log_in("ops audit pii")
    page = await (await tab.get(LIST)).text()
    assert 'group?kind=message&amp;carrier_id=ups"' in page
    assert "bad_luck" in await tab.text(f"{LIST}/group?kind=message&carrier_id=ups")
    assert (await tab.get(f"{LIST}/99")).status == 404
    assert (await tab.get(f"{LIST}/x")).status == 422
