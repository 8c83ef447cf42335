"""`--profile north,south`: lists of several services as one, and who does not answer is named."""

import json
from pathlib import Path

import pytest

from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.api import Api
from tests.world.shell import Shell

CELLS = "north,south,east"


@pytest.fixture
async def profiles(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make profiles of which north and south answer, and east does not."""
    for name in (
        "DATABASE_URL",
        "STATESVC_MASTER_KEY",
        "STATESVC_URL",
        "STATESVC_API_KEY",
        "STATESVC_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "key").write_text(await api.key("ops"))
    urls = dict.fromkeys(("north", "south"), str(api.client.make_url("/"))) | {
        "east": "http://127.0.0.1:9"
    }
    described = [
        f'[{name}]\nurl = "{url}"\nkey_file = "{tmp_path / "key"}"\n' for name, url in urls.items()
    ]
    (tmp_path / "profiles.toml").write_text("\n".join(described))
    monkeypatch.setenv("STATESVC_PROFILES", str(tmp_path / "profiles.toml"))


@pytest.mark.usefixtures("profiles")
async def test_lists_of_all_become_one_table_and_who_is_away_is_named(
    api: Api, shell: Shell
) -> None:
    await bury_messages(api, "x", "y")
    told = await shell("--profile", CELLS, "dead-letters", "list", exit_code=1)
    lines = told.splitlines()
    first_words = [
        line.split()[0] for line in lines if not line.startswith(("service:", "statesvc:"))
    ]
    assert first_words == ["PROFILE", "north", "north", "south", "south"]
    assert "statesvc: east: http://127.0.0.1:9 does not answer" in told


@pytest.mark.usefixtures("profiles")
async def test_documents_of_all_become_one_list(api: Api, shell: Shell) -> None:
    await bury_messages(api, "x")
    letters = json.loads(await shell("--profile", "north,south", "dead-letters", "list", "--json"))
    assert [letter["profile"] for letter in letters] == ["north", "south"]
    assert {letter["cause"] for letter in letters} == {"normalizer_failed"}


@pytest.mark.usefixtures("profiles")
async def test_a_line_says_whose_it_is(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATESVC_PROFILE", "north,south")
    assert await shell("dead-letters", "list") == "north: nothing waits\nsouth: nothing waits\n"


@pytest.mark.usefixtures("profiles")
async def test_what_changes_something_takes_one_profile(api: Api, shell: Shell) -> None:
    told = await shell("--profile", "north,south", "rollout", "hold", "ups", exit_code=2)
    assert "several profiles are only read from" in told
    held = await (
        await api.connection.execute("SELECT count(*) FROM statesvc.rollout WHERE hold")
    ).fetchone()
    assert held == (0,)
    assert "has no profile west" in await shell(
        "--profile", "north,west", "dead-letters", "list", exit_code=2
    )
