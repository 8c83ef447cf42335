"""Settings that a role or a database forces on sessions reach neither the roles nor the
commands.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.acceptance.all_roles import all_roles
from tests.acceptance.forced_settings import LIMITS, PARSING
from tests.acceptance.processes import Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import canonical
from tests.world.postgres import Server

# five roles, and faults that last for seconds
pytestmark = pytest.mark.timeout(400)

ALL = {**PARSING, **LIMITS}
EACH = {name: {name: value} for name, value in ALL.items()}
FORCED = EACH if os.environ.get("STATESVC_TEST_EACH_SETTING") == "1" else {"all": ALL}
PUSHES = 20
COMMANDS = (
    ("verify", "--processes", "2"),
    ("rebuild", "shipment", "--compare"),
    ("keys", "create", "--name", "one", "--scopes", "read"),
    ("rollout", "hold", "ups", "--why", "test"),
    ("status", "--json"),
    ("doctor", "--json"),
    ("erase", "canonical", "FS3", "--why", "test"),
)


@pytest.mark.parametrize("settings", FORCED.values(), ids=FORCED)
async def test_all_roles_and_commands_work(
    service_maker: ServiceMaker, server: Server, tmp_path: Path, settings: dict[str, str]
) -> None:
    await all_work(await service_maker(tmp_path), server, settings, COMMANDS)


async def test_all_roles_work_behind_a_pooler(
    service_maker: ServiceMaker, server: Server, tmp_path: Path
) -> None:
    await all_work(
        await service_maker(tmp_path, behind_pooler=True), server, PARSING, (("status", "--json"),)
    )


async def all_work(
    service: Service, server: Server, settings: dict[str, str], commands: Sequence[tuple[str, ...]]
) -> None:
    name = conninfo_to_dict(service.owner_dsn)["dbname"]
    with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
        for setting, value in settings.items():
            if setting != "transaction_timeout" or admin.info.server_version >= 170000:
                admin.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
    async with all_roles(service) as (_, subscriber):
        for number in range(PUSHES):
            body = canonical(
                f"FS{number}",
                f"fs-{number}",
                "in_transit",
                day=3,
                minute=100,
                description="Zürich – Łódź",
            ).body
            assert (await service.webhook("canonical", body))[0] == 200
        async with asyncio.timeout(45):
            await service.drained()
            await until_false(lambda: lacks(subscriber.received))
            await until_false(
                lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)")
            )
        assert await service.value("SELECT max(tree_size) FROM statesvc.checkpoint") > 0
        for path in (
            "/v1/feed",
            "/v1/shipments",
            "/v1/queue",
            "/v1/shipments/canonical/FS1/audit",
            "/v1/shipments/canonical/FS1/evidence",
        ):
            assert (await service.get(path))[0] == 200, path
        _, history = await service.get("/v1/shipments/canonical/FS1/history", include="personal")
        assert history["items"][0]["description"] == "Zürich – Łódź"
        assert history["items"][0]["occurred_at"] == "2026-05-03T01:40:00+00:00"
        for command in commands:
            await works(service, command)
        for role in service.roles:
            assert "Traceback" not in role.log.read_text()
            assert "NotImplementedError" not in role.log.read_text()


async def lacks(received: int) -> bool:
    return received < PUSHES


async def works(service: Service, command: tuple[str, ...]) -> None:
    exit_code, output, errors = await service.run(*command)
    assert "Traceback" not in output + errors, command
    if command[0] == "doctor":
        # the tests' server runs without fsync, and its clock is a movable one
        failed = [
            each
            for each in json.loads(output)
            if each["severity"] == "fail" and each["about"] not in {"durability", "clock"}
        ]
        assert failed == []
    elif command[0] != "status":
        assert exit_code == 0, (command, output, errors)
