"""Commands that call a running service: they have its address and a key, and nothing else of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from events.vocabulary import Status
from statesvc.cli.api_calls import File
from statesvc.cli.command_error import CommandError
from statesvc.cli.remote_calls import RemoteCalls
from statesvc.cli.service_profile import Service
from statesvc.privacy.erasure import DEAD_LETTERS_AT_ONCE
from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.api import Api, Statement
from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell


@pytest.fixture
def afar(
    api: Api, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], "Afar"]:
    """Make, by scopes, a shell of a machine that has no database, no master key and no data
    folder.
    """
    for name in (
        "DATABASE_URL",
        "STATESVC_MASTER_KEY",
        "STATESVC_URL",
        "STATESVC_API_KEY",
        "STATESVC_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path / "nothing"))
    return lambda scopes: Afar(api, shell, scopes, tmp_path)


class Afar:
    def __init__(self, api: Api, shell: Shell, scopes: str, folder: Path) -> None:
        self._api, self._shell, self._scopes, self._folder = api, shell, scopes, folder

    async def options(self) -> tuple[str, ...]:
        file = self._folder / "key"
        file.write_text(await self._api.key(self._scopes) + "\n")
        return ("--url", str(self._api.client.make_url("/")), "--key-file", str(file))

    async def __call__(self, *arguments: str, exit_code: int = 0) -> str:
        return await self._shell(*await self.options(), *arguments, exit_code=exit_code)

    async def actors(self) -> set[str]:
        query = "SELECT convert_from(canonical, 'UTF8')::jsonb ->> 'actor' FROM statesvc.action"
        return {
            actor
            for (actor,) in await (await self._api.connection.execute(query)).fetchall()
            if actor != "test"
        }


async def test_the_kill_switch_is_turned_from_afar_under_the_name_of_the_key(
    api: Api, afar: Callable[[str], Afar]
) -> None:
    shell = afar("ops")
    assert (
        await shell("rollout", "hold", "ups", "--why", "codes look wrong")
        == "ups: held; in effect at the next claim\n"
    )
    assert "codes look wrong" in await shell("rollout", "show")
    assert (
        await shell("rollout", "release", "ups") == "ups: released; in effect at the next claim\n"
    )
    assert await shell.actors() == {f"key:{(await api.key('ops')).split('_')[1]}"}


async def test_a_subscription_is_made_changed_and_deleted_from_afar(
    afar: Callable[[str], Afar],
) -> None:
    shell = afar("subscriptions")
    filters = ("--carrier", "ups", "--carrier", "fedex", "--status", "delivered")
    made = json.loads(
        await shell(
            "subscriptions",
            "create",
            "--receiver",
            "https://receiver.example/hook",
            "--name",
            "shop",
            *filters,
            "--json",
        )
    )
    assert made["secret"].startswith("whsec_")
    assert (sorted(made["carriers"]), made["statuses"]) == (["fedex", "ups"], ["delivered"])
    await shell(
        "subscriptions",
        "change",
        made["id"],
        "--type",
        "shipment.status_changed",
        "--receiver",
        "https://new.example/hook",
    )
    told = await shell("subscriptions", "show", made["id"])
    assert "shop" in told
    assert "https://new.example/hook" in told
    assert "shipment.status_changed" in told
    assert "deleted" in await shell("subscriptions", "delete", made["id"], "--why", "closed")
    assert "no subscription" in await shell("subscriptions", "show", made["id"], exit_code=1)


async def test_a_key_without_the_scope_gets_the_sentence_of_the_api(
    afar: Callable[[str], Afar],
) -> None:
    told = await afar("read")("rollout", "hold", "ups", exit_code=1)
    assert "this call takes a key with scope `ops`; key " in told


async def test_what_breaks_the_contract_names_the_option(afar: Callable[[str], Afar]) -> None:
    assert "--percent: " in await afar("ops")(
        "rollout", "set", "ups", "--percent", "101", exit_code=2
    )
    assert "no such carrier" in await afar("ops")("rollout", "hold", "nobody", exit_code=2)


async def test_what_is_no_text_is_refused_before_it_is_sent() -> None:
    calls = RemoteCalls(Service(url="http://127.0.0.1:9", key="ss_x"))
    with pytest.raises(CommandError, match="printable characters"):
        await calls.call("delete_subscription", why="closed\r\nX-Other: 1", subscription_id="a")
    with pytest.raises(CommandError, match="not text in UTF-8"):
        await calls.call("get_shipment", carrier_id="ups", tracking_number="1Z\udcff")


@pytest.mark.usefixtures("afar")
async def test_a_service_that_is_away_is_a_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ss_x")
    told = await shell(
        "--url",
        "http://127.0.0.1:9",
        "--key-file",
        str(tmp_path / "key"),
        "rollout",
        "show",
        exit_code=1,
    )
    assert "http://127.0.0.1:9 does not answer" in told


async def test_a_command_of_the_machine_refuses_an_address(
    afar: Callable[[str], Afar], shell: Shell
) -> None:
    assert "own machine" in await shell(*await afar("ops").options(), "doctor", exit_code=2)


async def test_a_profile_has_address_and_key(
    afar: Callable[[str], Afar], shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url, _, key_file = await afar("ops").options()
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(f'[near]\nurl = "{url}"\nkey_file = "{key_file}"\n[bare]\nurl = "{url}"\n')
    monkeypatch.setenv("STATESVC_PROFILES", str(profiles))
    assert "No rollout was ever set" in await shell("--profile", "near", "rollout", "show")
    assert "takes a key" in await shell("--profile", "bare", "rollout", "show", exit_code=2)
    assert "it has: bare, near" in await shell("--profile", "far", "rollout", "show", exit_code=2)
    several = await shell("--profile", "near,bare", "rollout", "show", exit_code=2)
    assert "several profiles in one command were removed: run it once for each" in several
    monkeypatch.setenv("STATESVC_PROFILE", "near")
    assert "No rollout was ever set" in await shell("rollout", "show")


async def test_the_environment_names_the_service_and_flags_win(
    api: Api, afar: Callable[[str], Afar], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url, _, _ = await afar("ops").options()
    monkeypatch.setenv("STATESVC_URL", url)
    monkeypatch.setenv("STATESVC_API_KEY", await api.key("ops"))
    assert "No rollout was ever set" in await shell("rollout", "show")
    monkeypatch.setenv("STATESVC_URL", "http://127.0.0.1:9")
    assert "No rollout was ever set" in await shell("--url", url, "rollout", "show")


@pytest.mark.usefixtures("own_processes")
def test_a_call_from_afar_loads_neither_the_database_driver_nor_the_carriers(
    tmp_path: Path,
) -> None:
    (tmp_path / "key").write_text("ss_x")
    options = ["--url", "http://127.0.0.1:9", "--key-file", str(tmp_path / "key")]
    commands = (
        "actions list",
        "carriers unmapped",
        "dead-letters list",
        "erase ups 1Z --why x",
        "evidence ups 1Z --out e.json",
        "expectations",
        "keys list",
        "legal-hold list",
        "notices list",
        "queue",
        "rollout show",
        "shipments find 1Z",
        "status",
        "subscriptions list",
        "workers",
    )
    code = f"""
import sys
from statesvc.cli import main
found = []
for command in {commands!r}:
    ended = main([*{options!r}, *command.split()])
    loaded = {{"psycopg", "aiohttp", "lxml", "structlog", "events.carriers"}} & set(sys.modules)
    found.append(f"{{command}} {{ended}} {{sorted(loaded)}}")
print(*found, sep="\\n")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-len(commands) :] == [f"{each} 1 []" for each in commands]


async def test_a_person_is_erased_from_afar(api: Api, afar: Callable[[str], Afar]) -> None:
    # more than one call searches
    await bury_messages(api, *["another"] * DEAD_LETTERS_AT_ONCE, "1Z99")
    shell = afar("admin")
    told = await shell("erase", "ups", "1z-99", "--why", "asked to")
    assert "Erased: 1 shipment (" in told
    assert f"1 of {DEAD_LETTERS_AT_ONCE + 1} dead letters of the carrier named it" in told
    assert "tombstones lie in " in told
    assert "Was erased before" in await shell("erase", "ups", "1Z99", "--why", "asked to")


@pytest.mark.usefixtures("own_processes")
async def test_evidence_is_fetched_and_verified_with_a_key_alone(
    api: Api, scan: Statement, afar: Callable[[str], Afar], shell: Shell, tmp_path: Path
) -> None:
    await api.carriers.push(scan("5", Status.DELIVERED, signed_by="J. Doe"))
    remote, out = afar("audit pii"), tmp_path / "e.json"
    assert "sealed" in await remote("evidence", "ups", "5", "--out", str(out), exit_code=1)
    await LogBuilder(api.connection, api.keyring).seal()
    assert "entries of the log, sealed 20" in await remote(
        "evidence", "ups", "5", "--out", str(out)
    )
    assert b"J. Doe" in out.read_bytes()
    (tmp_path / "log.pub").write_text("\n".join(json.loads(out.read_bytes())["log"]["keys"]))
    assert "evidence holds" in await shell(
        "verify", "--bundle", str(out), "--key", str(tmp_path / "log.pub")
    )
    await remote("evidence", "ups", "5", "--out", str(out), "--without-personal-data")
    assert b"J. Doe" not in out.read_bytes()


async def test_an_address_that_answers_no_json_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fetch(*_: object, **__: object) -> File:
        return File(b"<!doctype html>", {})

    monkeypatch.setattr(RemoteCalls, "fetch", fetch)
    calls = RemoteCalls(Service(url="http://shop.example", key="ss_x"))
    with pytest.raises(CommandError, match="answered no JSON"):
        await calls.call("get_status")
