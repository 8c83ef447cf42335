"""Dead letters on the console: groups, one next to its masked body, plan, replay in parts,
discard.
"""

import re

import orjson

from tests.statesvc.api.test_dead_letter_replay import bury_messages, rows
from tests.world.api import Api
from tests.world.console import ConsoleClient

LIST = "/console/dead-letters"


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
