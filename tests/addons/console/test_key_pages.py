"""API keys on the console: listed, created and shown once, revoked."""

import re

from tests.world.console import ConsoleClient

LIST = "/console/keys"


async def test_a_key_is_created_shown_once_and_revoked(console: ConsoleClient) -> None:
    await console.log_in("admin", may_change="on")
    made = await console.act(
        f"{LIST}/create", why="a new shift", name="night shift", scopes="read, ops"
    )
    key = re.search(r"ss_([0-9a-f]{12})_[\w-]{43}", made)
    assert key is not None
    listed = await console.text(LIST)
    assert "night shift" in listed
    assert key[0] not in listed
    assert f'href="{LIST}/{key[1]}/revoke"' in await (await console.get(LIST)).text()
    revoked = await console.act(f"{LIST}/{key[1]}/revoke", why="it leaked")
    assert f"Key {key[1]} is revoked" in revoked
    assert "night shift" not in await console.text(LIST)
    assert "night shift" in await console.text(f"{LIST}?revoked=true")
