"""Reads with `max_staleness`, on a database that stands in for a standby: it is behind, read-only, and the test says how far.

`tests/soak/test_patroni.py` has a real one.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from events.crypto.sealing import MasterKeys
from events.vocabulary import Status
from statesvc.api import replica_reads
from statesvc.api.personal_reads import PersonalReads
from statesvc.api.replica_reads import STALENESS_HEADER, Replica
from statesvc.api.routes import routes
from statesvc.api.served_context import served_context
from statesvc.cli.doctor.replica_check import check_replica
from statesvc.database.keyring_store import load_keyring
from statesvc.database.pool import Pool, make_pool
from statesvc.health.finding import Urgency
from statesvc.http.app import build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.log.checkpoint_store import FolderCheckpointStore
from statesvc.log.history import History
from statesvc.log.tombstones import Tombstones
from tests.contract import contract_of
from tests.world import postgres
from tests.world.api import LIMITS, Api, Carriers, Reply, Waker
from tests.world.database import Database

SHIPMENT = "/v1/shipments/ups/7"
_RECOVERING = """
CREATE SCHEMA recovering;
CREATE TABLE recovering.replayed (at timestamptz);
INSERT INTO recovering.replayed VALUES (statesvc.clock());
CREATE FUNCTION recovering.pg_is_in_recovery() RETURNS boolean RETURN true;
CREATE FUNCTION recovering.pg_last_xact_replay_timestamp() RETURNS timestamptz RETURN (SELECT r.at FROM recovering.replayed AS r);
GRANT USAGE ON SCHEMA recovering TO PUBLIC;
GRANT SELECT ON recovering.replayed TO PUBLIC;
"""


@dataclass
class Standby:
    """`api` asks the primary, which knows better, or this."""

    api: Api
    database: Database
    pool: Pool
    outcomes: list[str] = field(default_factory=list)

    async def ask(
        self, path: str = SHIPMENT, *, scopes: str = "read", **query: str | float
    ) -> Reply:
        return await self.api.get(
            path, scopes=scopes, params={name: str(value) for name, value in query.items()}
        )

    async def execute(self, query: str) -> None:
        async with await AsyncConnection.connect(
            self.database.owner_dsn, autocommit=True
        ) as connection:
            await connection.execute(query.encode())

    async def fall_behind(self, seconds: float) -> None:
        await self.execute(
            f"UPDATE recovering.replayed SET at = statesvc.clock() - interval '{seconds} seconds'"
        )


@pytest.fixture
async def standby(
    database: Database, server: postgres.Server, scan: Any, tmp_path: Path
) -> AsyncIterator[Standby]:
    """Run a standby on which the shipment is in transit, while it is delivered on the primary."""
    name = postgres.create_database(server)
    behind = Database.of(server.on(name))
    options = "-c search_path=recovering,pg_catalog -c default_transaction_read_only=on"
    primary = make_pool(database.service_dsn, name="primary", limits=LIMITS)
    replica = make_pool(
        make_conninfo(behind.service_dsn, options=options),
        name="replica",
        limits=LIMITS,
        writes=False,
    )
    try:
        async with (
            primary,
            replica,
            await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection,
            await AsyncConnection.connect(behind.service_dsn, autocommit=True) as older,
        ):
            masters = MasterKeys([bytes(range(32))])
            keyring = await load_keyring(connection, masters)
            await Carriers(older, await load_keyring(older, masters)).say(
                scan("7", Status.IN_TRANSIT, signed_by="A. Person")
            )
            await Carriers(connection, keyring).say(
                scan("7", Status.IN_TRANSIT),
                scan("7", Status.DELIVERED, minutes=9, signed_by="A. Person"),
            )
            outcomes: list[str] = []
            readings = PersonalReads(primary)
            context = served_context(
                pool=primary,
                keyring=keyring,
                waker=Waker(),
                archive=tmp_path,
                backup_days=7,
                tombstones=Tombstones([(FolderCheckpointStore(tmp_path), "tombstones")]),
                readings=readings,
                replica=Replica(
                    replica, History(tmp_path, is_read_only=True), count=outcomes.append
                ),
            )
            calls = routes(context)
            app = build_app(calls, keys=Keys(primary))
            async with TestClient(TestServer(app)) as client:
                api = Api(
                    client,
                    connection,
                    Carriers(connection, keyring),
                    keyring,
                    [],
                    contract_of(calls),
                    readings,
                )
                asked = Standby(api, behind, replica, outcomes)
                await asked.execute(_RECOVERING)
                yield asked
    finally:
        postgres.drop_database(server, name)


async def test_a_standby_that_is_fresh_enough_answers_and_says_how_old_it_is(
    standby: Standby,
) -> None:
    await standby.fall_behind(20)
    by_id = f"/v1/shipments/{(await standby.ask()).body['shipment_id']}"
    for path in (SHIPMENT, f"{SHIPMENT}/history", "/v1/shipments", by_id):
        older = await standby.ask(path, max_staleness=60)
        assert older.status == 200
        assert 20 <= float(older.headers[STALENESS_HEADER]) <= 60
        assert "'delivered'" not in str(older.body)
        newest = await standby.ask(path, max_staleness=20)
        assert (newest.headers[STALENESS_HEADER], "'delivered'" in str(newest.body)) == ("0", True)
    assert standby.outcomes == ["answered", "stale"] * 4


async def test_without_a_bound_or_with_zero_the_primary_answers_and_a_wrong_one_is_refused_by_name(
    standby: Standby,
) -> None:
    newest = await standby.ask()
    assert (newest.body["status"], STALENESS_HEADER in newest.headers) == ("delivered", False)
    assert (await standby.ask(max_staleness=0)).headers[STALENESS_HEADER] == "0"
    for wrong in ("-1", "3601", "nan", "inf", "soon", "PT5S", ""):
        reply = await standby.ask(max_staleness=wrong)
        assert (reply.status, reply.body["code"]) == (422, "invalid_request")
        assert reply.body["errors"][0]["pointer"] == "/query/max_staleness"
    assert standby.outcomes == []


async def test_what_the_standby_has_not_got_yet_the_primary_answers(
    standby: Standby, scan: Any
) -> None:
    await standby.api.carriers.say(scan("8", Status.PICKED_UP))
    reply = await standby.ask("/v1/shipments/ups/8", max_staleness=60)
    assert (reply.status, reply.headers[STALENESS_HEADER]) == (200, "0")
    assert (await standby.ask("/v1/shipments/ups/9", max_staleness=60)).status == 404
    assert standby.outcomes == ["passed_on", "passed_on"]


async def test_personal_fields_come_from_the_primary_which_records_who_reads_them(
    standby: Standby,
) -> None:
    for path in (SHIPMENT, f"{SHIPMENT}/history"):
        reply = await standby.ask(path, scopes="read pii", max_staleness=60, include="personal")
        assert (reply.status, reply.headers[STALENESS_HEADER], "A. Person" in str(reply.body)) == (
            200,
            "0",
            True,
        )
    assert standby.outcomes == []


async def test_archived_months_are_left_to_the_primary(standby: Standby) -> None:
    await standby.execute(
        "INSERT INTO statesvc.log_archive SELECT date_trunc('month', at)::date, at - interval '1 day', at + interval '1 day', at,"
        " 'a', sha256(''), sha256(''), 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, at, at, at FROM recovering.replayed"
    )
    assert (await standby.ask(max_staleness=60)).body["status"] == "delivered"
    assert standby.outcomes == ["passed_on"]


async def test_one_that_was_promoted_or_replayed_nothing_is_not_believed_and_doctor_says_so(
    standby: Standby,
) -> None:
    url = make_conninfo(
        standby.database.service_dsn, options="-c search_path=recovering,pg_catalog"
    )
    assert (await check_replica(url)).urgency is Urgency.OK
    await standby.fall_behind(90)
    assert "90 s behind" in (await check_replica(url)).text
    await standby.execute("UPDATE recovering.replayed SET at = NULL")
    assert (await standby.ask(max_staleness=60)).body["status"] == "delivered"
    await standby.execute(
        "CREATE OR REPLACE FUNCTION recovering.pg_is_in_recovery() RETURNS boolean RETURN false"
    )
    assert (await standby.ask(max_staleness=60)).body["status"] == "delivered"
    assert standby.outcomes == ["stale", "stale"]
    assert "no standby" in (await check_replica(url)).text


async def test_one_that_hangs_delays_one_call_and_is_left_alone_for_a_while(
    standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_reads, "REPLICA_SECONDS", 0.2)
    async with await AsyncConnection.connect(standby.database.owner_dsn) as holder:
        await holder.execute("LOCK TABLE statesvc.shipment")
        for _ in range(3):
            assert (await standby.ask(max_staleness=60)).body["status"] == "delivered"
        assert standby.outcomes == ["away"] * 3


async def test_one_that_is_gone_is_missed_by_nobody(standby: Standby) -> None:
    await standby.pool.close()
    assert (await standby.ask(max_staleness=60)).body["status"] == "delivered"
    assert standby.outcomes == ["away"]
    away = await check_replica(make_conninfo(standby.database.service_dsn, port=1))
    assert (away.urgency, "does not answer" in away.text) == (Urgency.HUMAN, True)
