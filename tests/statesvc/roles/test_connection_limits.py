"""Limits of connections: how those that there are become pools."""

from collections import Counter

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from statesvc.database.room import Bound, read_room
from statesvc.roles.connection_limits import (
    BESIDES,
    DIRECT,
    LEAST,
    ONE_OF_EACH,
    ConnectionPlan,
    TooFewConnectionsError,
    plan_for,
    worker_limits,
)
from statesvc.settings.service_settings import CONNECTIONS_MIN, load_settings
from tests.world.postgres import Server


def bound(connections: int, others: int = 0) -> Bound:
    return Bound(connections=connections, others=others, why="the server takes so many")


@pytest.mark.parametrize("connections", [*range(CONNECTIONS_MIN, 30), 100])
def test_a_plan_takes_exactly_what_there_is_and_gives_nobody_less_for_more(
    connections: int,
) -> None:
    plan, before = ConnectionPlan.of(connections), ConnectionPlan.of(connections - 1)
    assert plan.wanted(ONE_OF_EACH) == connections
    assert all(plan.pools[name] >= before.pools[name] for name in plan.pools)


def test_by_default_each_role_has_its_share() -> None:
    plan = ConnectionPlan.of(load_settings().database.database_connections)
    assert plan.pools == {
        "ingress": 4,
        "api": 3,
        "worker": 3,
        "notifier": 2,
        "sealer": 1,
        BESIDES: 5,
    }
    assert {role: plan.pools[role] + DIRECT[role] for role in DIRECT} == {
        "ingress": 5,
        "api": 4,
        "worker": 4,
        "notifier": 3,
        "sealer": 3,
    }


def test_the_least_plan_is_what_settings_take_as_their_least() -> None:
    assert ConnectionPlan.of(0).wanted(ONE_OF_EACH) == CONNECTIONS_MIN
    assert ConnectionPlan.of(0).pools == {**LEAST, BESIDES: 1}


def test_what_the_server_leaves_bounds_the_plan() -> None:
    settings = load_settings()
    assert plan_for(settings, None).wanted(ONE_OF_EACH) == 24
    assert plan_for(settings, bound(97)).wanted(ONE_OF_EACH) == 24
    assert plan_for(settings, bound(97, others=80)).wanted(ONE_OF_EACH) == 17
    # others may leave
    assert plan_for(settings, bound(97, others=96)).wanted(ONE_OF_EACH) == CONNECTIONS_MIN
    with pytest.raises(
        TooFewConnectionsError,
        match=(
            r"\+ 1 for commands, evidence and archiving = 14, but the server takes so many: 13 left"
        ),
    ):
        plan_for(settings, bound(13))


def test_of_several_processes_the_sum_names_how_many() -> None:
    fleet = [*ONE_OF_EACH, "worker", "worker"]
    text = ConnectionPlan.of(24).arithmetic(fleet)
    assert "worker 3 x (3 + 1 direct)" in text
    assert text.endswith(f"= {ConnectionPlan.of(24).wanted(fleet)}")
    assert ConnectionPlan.of(24).wanted(fleet) == 24 + 2 * 4


def test_a_pool_has_the_share_of_its_role() -> None:
    limits = ConnectionPlan.of(24).resized(worker_limits(load_settings()), ["worker"])
    assert (limits.connections_min, limits.connections_max) == (2, 3)


async def test_the_narrowest_limit_is_read_with_what_others_use(
    server: Server, database: Server
) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(database.service_dsn)["dbname"])
    async with await psycopg.AsyncConnection.connect(
        database.service_dsn, autocommit=True
    ) as connection:
        found = await read_room(connection)
        assert "max_connections" in found.why
        assert found.connections == Counter({"max": 200, "reserved": -3}).total()
    async with (
        await psycopg.AsyncConnection.connect(server.superuser_dsn, autocommit=True) as admin,
        await psycopg.AsyncConnection.connect(database.owner_dsn, autocommit=True),
    ):
        await admin.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 20')
        async with await psycopg.AsyncConnection.connect(
            make_conninfo(database.service_dsn), autocommit=True
        ) as connection:
            found = await read_room(connection)
    assert (found.connections, found.others, found.left) == (20, 1, 19)
    assert f"ALTER DATABASE {name} CONNECTION LIMIT" in found.why
