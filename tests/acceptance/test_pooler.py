"""The service behind PgBouncer in transaction mode; STATESVC_TEST_PGBOUNCER=1 runs every
acceptance test that way.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Service
from tests.acceptance.test_crash import assert_each_took_effect_once, push

ServiceMaker = Callable[..., Any]


async def test_each_message_takes_effect_once_behind_a_pooler(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service = await service_maker(tmp_path, behind_pooler=True)
    async with service:
        await service.start("api", "worker", "worker", "notifier")
        acknowledged = await push(service, 300)
        await service.drained()
        await assert_each_took_effect_once(service, acknowledged)
        status, listed = await service.get("/v1/shipments", limit="5")
        assert status == 200
        shipment = listed["items"][0]
        status, _ = await service.get(
            f"/v1/shipments/{shipment['carrier_id']}/{shipment['tracking_number']}/audit"
        )
        assert status == 200
        for role in service.roles:
            assert '"level":"error"' not in role.log.read_text()


@pytest.mark.parametrize("command", ["api", "worker", "sealer", "up"])
async def test_nothing_starts_behind_a_pooler_that_does_not_carry_what_is_sent_through_it(
    service_maker: ServiceMaker, tmp_path: Path, command: str
) -> None:
    wrong = {"STATESVC_PREPARED_STATEMENTS": "true"}
    service: Service = await service_maker(tmp_path, wrong, behind_pooler=True)
    async with service:
        exit_code, _, errors = await service.run(command, "--port", "0")
    assert exit_code == 1
    assert "set STATESVC_PREPARED_STATEMENTS=false, or use PgBouncer 1.22 or later" in errors


async def test_nothing_starts_that_listens_through_a_pooler(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    service: Service = await service_maker(tmp_path, behind_pooler=True)
    async with service:
        through = service.environment["DATABASE_URL"]
        exit_code, _, errors = await service.run(
            "worker", "--port", "0", settings={"STATESVC_LISTEN_URL": through}
        )
    assert exit_code == 1
    assert (
        "leads through a pooler in transaction mode: set STATESVC_LISTEN_URL to the server itself"
        in errors
    )
