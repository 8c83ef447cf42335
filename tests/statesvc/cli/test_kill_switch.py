"""The kill switch, and what is looked at before it is turned, with whatever is away: the api, the
master key, all connections but one.
"""

import pytest
from psycopg import AsyncConnection, sql

from tests.world.database import Database
from tests.world.shell import Shell, use

COMMANDS = (
    ("queue",),
    ("rollout", "hold", "ups", "--why", "codes look wrong"),
    ("rollout", "release", "all"),
    ("rollout", "show"),
)


@pytest.fixture(params=["the api is down", "the master key is away", "one connection is left"])
async def trouble(
    request: pytest.FixtureRequest,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: str,
) -> str:
    use(database, monkeypatch)
    if request.param == "the master key is away":
        monkeypatch.delenv("STATESVC_MASTER_KEY")
        monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path))
    if request.param == "one connection is left":
        async with await AsyncConnection.connect(
            database.superuser_dsn, autocommit=True
        ) as connection:
            ((name,),) = await (await connection.execute("SELECT current_database()")).fetchall()
            await connection.execute(
                sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 1").format(sql.Identifier(name))
            )
    return str(request.param)


@pytest.mark.usefixtures("trouble")
async def test_the_kill_switch_is_turned_all_the_same(shell: Shell) -> None:
    for command in COMMANDS:
        await shell(*command)
    # nothing runs here, which needs a human
    await shell("status", exit_code=1)
    done = await shell.json("actions", "list")
    assert [(each["verb"], each["target"]) for each in done] == [
        ("release", "carrier *"),
        ("hold", "carrier ups"),
    ]


async def test_a_drill_is_refused_while_nobody_would_take_over(here: Shell) -> None:
    await here(
        "rollout",
        "set",
        "ups",
        "--stable",
        "old@1",
        "--candidate",
        "1",
        "--percent",
        "5",
        "--why",
        "a share",
    )
    assert "no worker asked for old@1" in await here("rollout", "drill", "ups", exit_code=2)
    assert "percent    5" in await here("rollout", "show", "ups")
    done = await here("actions", "list", "--target", "carrier ups")
    assert "a share" in done
    assert "drill" not in done
