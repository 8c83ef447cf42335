"""API keys on the console: listed, created and shown once, revoked."""

import re

from tests.world.console import Tab

LIST = "/console/keys"


async def test_a_key_is_created_shown_once_and_revoked(tab: Tab) -> None:
    await tab.log_in("admin", may_change="on")
    made = await tab.act(
        f"{LIST}/create", why="a new shift", name="night shift", scopes="read, ops"
    )
    key = re.search(r"ss_([0-9a-f]{12})_[\w-]{43}", made)
    assert key is not None
    listed = await tab.text(LIST)
    assert "night shift" in listed
    assert key[0] not in listed
    assert f'href="{LIST}/{key[1]}/revoke"' in await (await tab.get(LIST)).text()
    revoked = await tab.act(f"{LIST}/{key[1]}/revoke", why="it leaked")
    assert f"Key {key[1]} is revoked" in revoked
    assert "night shift" not in await tab.text(LIST)
    assert "night shift" in await tab.text(f"{LIST}?revoked=true")


async def test_a_scope_that_there_is_not_is_named_and_readers_see_no_keys(tab: Tab) -> None:
    await tab.log_in("admin", may_change="on")
    refused = await tab.preview(f"{LIST}/create", why="x", name="x", scopes="read, everything")
    assert "scopes/1" in refused
    await tab.log_in("ops read")
    assert (await tab.get(LIST)).status == 403
