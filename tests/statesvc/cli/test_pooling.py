"""`doctor` behind PgBouncer and HTTP proxies: it names the setting that is wrong, and nothing
else.
"""

import asyncio
import json
from typing import Any

import pytest
from psycopg import AsyncConnection
from structlog.testing import capture_logs

from statesvc.cli import main
from statesvc.roles.supervisor.child_plan import prepare
from statesvc.settings.service_settings import load_settings
from tests.acceptance.processes import MASTER_KEY
from tests.world import pgbouncer
from tests.world.database import Database

ABOUT = {"wake-ups", "time limits", "prepared statements", "owner", "pooler", "proxy"}


async def found(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    database: Database,
    **settings: str,
) -> dict[str, tuple[str, str]]:
    """Return what doctor says about connections: severity and text by what it is about."""
    told = {
        "DATABASE_URL": database.service_dsn,
        "STATESVC_OWNER_URL": database.owner_dsn,
        "STATESVC_MASTER_KEY": MASTER_KEY,
        **settings,
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    # the clock of the tests is a finding of its own
    assert await asyncio.to_thread(main, ("doctor", "--json")) == 1
    findings: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return {
        each["about"]: (each["severity"], each["text"])
        for each in findings
        if each["about"] in ABOUT
    }


async def test_the_right_settings_behind_a_pooler_are_good(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pgbouncer.between(database.service_dsn, wanted=True) as settings:
        said = await found(capsys, monkeypatch, database, **settings)
    assert {about: severity for about, (severity, _) in said.items()} == {
        "wake-ups": "ok",
        "time limits": "ok",
        "prepared statements": "ok",
    }


async def test_prepared_statements_that_the_pooler_does_not_carry_are_named(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pgbouncer.between(database.service_dsn, wanted=True) as settings:
        said = await found(
            capsys, monkeypatch, database, **{**settings, "STATESVC_PREPARED_STATEMENTS": "true"}
        )
        async with await AsyncConnection.connect(
            settings["DATABASE_URL"], prepare_threshold=None
        ) as connection:
            left = await (
                await connection.execute("SELECT count(*) FROM pg_prepared_statements")
            ).fetchone()
    severity, text = said.pop("prepared statements")
    assert severity == "fail"
    assert "STATESVC_PREPARED_STATEMENTS=false" in text
    assert left == (0,)
    assert {severity for severity, _ in said.values()} == {"ok"}


async def test_prepared_statements_that_the_pooler_carries_are_good(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pgbouncer.can_carry_prepared_statements():
        pytest.skip("this PgBouncer is older than 1.21")
    async with pgbouncer.pooled(database.service_dsn, prepared_max=100) as (through,):
        said = await found(
            capsys,
            monkeypatch,
            database,
            DATABASE_URL=through,
            STATESVC_LISTEN_URL=database.service_dsn,
        )
    assert said["prepared statements"][0] == "ok"


async def test_listening_through_the_pooler_is_named_and_so_are_time_limits_on_shared_sessions(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pgbouncer.pooled(database.service_dsn) as (through,):
        said = await found(
            capsys,
            monkeypatch,
            database,
            DATABASE_URL=through,
            STATESVC_PREPARED_STATEMENTS="false",
        )
        assert said["wake-ups"][0] == said["time limits"][0] == "fail"
        assert (
            "DATABASE_URL leads through a pooler in transaction mode: set STATESVC_LISTEN_URL"
            in said["wake-ups"][1]
        )
        said = await found(capsys, monkeypatch, database, STATESVC_LISTEN_URL=through)
    assert said["wake-ups"][0] == "fail"
    assert said["wake-ups"][1].startswith("STATESVC_LISTEN_URL leads through a pooler")


async def test_an_owner_behind_the_pooler_is_named(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pgbouncer.pooled(database.owner_dsn) as (through,):
        said = await found(capsys, monkeypatch, database, STATESVC_OWNER_URL=through)
        with capture_logs() as logged:
            await asyncio.to_thread(prepare, load_settings())
    assert said["owner"][0] == "fail"
    assert "migrations hold a lock" in said["owner"][1]
    assert [line["why"] for line in logged if line["event"] == "owner_behind_pooler"] == [
        said["owner"][1]
    ]


async def test_a_pooler_in_session_mode_is_as_good_as_none(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pgbouncer.pooled(database.service_dsn, mode="session") as (through,):
        said = await found(capsys, monkeypatch, database, DATABASE_URL=through)
    assert said["wake-ups"] == (
        "ok",
        "DATABASE_URL leads through a pooler in session mode, where LISTEN works",
    )
    assert "time limits" not in said


async def test_without_a_pooler_what_is_set_for_one_is_said_to_be_needless(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await found(
        capsys,
        monkeypatch,
        database,
        STATESVC_LISTEN_URL=f"{database.service_dsn} application_name=elsewhere",
        STATESVC_PREPARED_STATEMENTS="false",
    )
    assert {about: severity for about, (severity, _) in said.items()} == {
        "wake-ups": "ok",
        "prepared statements": "warn",
        "pooler": "warn",
    }


async def test_a_proxy_that_is_set_for_all_programs_has_no_effect_and_is_named(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"HTTPS_PROXY": "http://127.0.0.1:3128"}
    said = await found(capsys, monkeypatch, database, **named)
    assert said["proxy"][0] == "warn"
    assert "set STATESVC_EGRESS_PROXY" in said["proxy"][1]
    named["STATESVC_EGRESS_PROXY"] = "http://user:secret@127.0.0.1:3128"
    assert "proxy" not in await found(capsys, monkeypatch, database, **named)
