"""This release with a long log, upgraded under load to a trial of the next one, and back.

The trial is this code with what a release may bring: a column, an index that is built while traffic
goes on, a function more and one in another text. It is thrown away after.
"""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from psycopg import AsyncConnection

from statesvc.database.keyring_store import load_keyring, parse_master_keys
from tests.acceptance.processes import MASTER_KEY, Service, running, until_false
from tests.bench.inbox import RELEASE, waiting
from tests.bench.report import percentile
from tests.bench.server import Place
from tests.bench.traffic import SCANS, histories
from tests.soak.carriers import Carriers
from tests.soak.crew import Crew, Post
from tests.soak.ledger import Ledger, promises
from tests.soak.server import soak_server
from tests.soak.story import RATE, SEED
from tests.soak.traffic import traffic
from tests.world import postgres

EVENTS: Final = int(os.environ.get("STATESVC_SOAK_EVENTS", "1000000"))
ROOT: Final = Path(__file__).parents[2]
PAUSE_SECONDS: Final = 2.0
"""Seconds of load with the same processes, between two restarts."""
ROLES: Final = ("ingress", "ingress", "api", "worker", "worker", "notifier", "sealer")
_PACKAGES: Final = ("statesvc", "events", "projections", "migrations")
_SETTINGS: Final = {
    "STATESVC_WEBHOOK_SECRET_UPS": None,
    "STATESVC_LOG_LEVEL": "warning",
    "STATESVC_LOG_FORMAT": "json",
}
_EXPAND: Final = "ALTER TABLE statesvc.shipment ADD COLUMN trial text;\n"
_INDEX: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS shipment_trial ON statesvc.shipment (trial);\n"
)
_FUNCTION: Final = "CREATE FUNCTION statesvc.trial() RETURNS int LANGUAGE sql IMMUTABLE RETURN 2;\n"
_IS_BUSY: Final = (
    "SELECT EXISTS (SELECT FROM statesvc.inbox) OR EXISTS (SELECT FROM statesvc.unsealed)"
)
_KEPT: Final = """
    SELECT message_id::text FROM statesvc.message UNION ALL
    SELECT message_id::text FROM statesvc.dead_letter WHERE kind = 'message' AND cause <> 'rejected_member'
"""


def next_release(folder: Path) -> Mapping[str, str]:
    """Make the trial; return the environment in which `python -m statesvc` is its."""
    for package in _PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    migrations = folder / "migrations"
    (migrations / "0901_trial.sql").write_text(_EXPAND)
    (migrations / "0902_shipment_trial.sql").write_text(_INDEX)
    (migrations / "functions" / "trial.sql").write_text(_FUNCTION)
    changed = migrations / "functions" / "has_code.sql"
    changed.write_text(f"{changed.read_text()}\n-- as the trial has it\n")
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


@pytest.mark.soak
@pytest.mark.usefixtures("own_processes")
async def test_a_long_log_is_upgraded_under_load_and_back(tmp_path: Path) -> None:
    trial = await asyncio.to_thread(next_release, tmp_path / "trial")
    async with soak_server() as own, AsyncExitStack() as stack:
        place = Place(
            service=own.dsns.service_dsn, owner=own.dsns.owner_dsn, superuser=own.dsns.superuser_dsn
        )
        await _fill(place, own.dsns, tmp_path)
        service = await stack.enter_async_context(_service(own.dsns, tmp_path))
        ledger = Ledger(tmp_path / "ledger.ndjson")
        stack.callback(ledger.close)
        crew = Crew(service, [Post(role=role) for role in ROLES])
        stack.push_async_callback(crew.abandon)
        await crew.start()
        async with await AsyncConnection.connect(own.dsns.owner_dsn, autocommit=True) as connection:
            keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
        pushed = traffic(SEED, keyring.carrier_digest)
        carriers = Carriers(
            session=service.session,
            url=lambda: crew.webhook_url,
            ledger=ledger,
            pushes=pushed,
            rate=RATE,
        )
        carrying = asyncio.create_task(carriers.run(), name="carriers")
        head = tmp_path / "head"
        async with service.session.get(f"{service.api.url}/v1/checkpoint") as answer:
            head.write_text(await answer.text())
        await asyncio.sleep(PAUSE_SECONDS)
        began = time.monotonic()
        # a process of its own, for what `run` forks is this code
        environment = {**service.environment, **trial}
        migrating = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "statesvc", "migrate", env=environment
        )
        assert await migrating.wait() == 0
        migrated_seconds = time.monotonic() - began
        assert await place.value("SELECT statesvc.trial()") == 2
        for settings in (trial, {}):
            await _replace_all(crew, settings)
        assert "newer" in (await service.run("migrate", "--check"))[1]
        carriers.stop()
        await carrying
        async with asyncio.timeout(240):
            await until_false(lambda: place.value(_IS_BUSY), pause_seconds=0.25)
        with ledger.path.open() as lines:
            promised = promises(lines)
        acknowledged = promised.readable | promised.unreadable
        kept = {message_id for (message_id,) in await place.rows(_KEPT)}
        assert acknowledged - kept == set(), "lost"
        assert [ids for ids in promised.messages.values() if len(ids) > 1] == [], (
            "one body, several messages"
        )
        assert crew.deaths == []
        exit_code, output, errors = await service.run("verify", "--checkpoint", str(head))
        assert exit_code == 0, output + errors
        gaps = [later - before for before, later in pairwise(carriers.sent.acked_at)]
        waited = sorted(carriers.sent.ack_seconds)
        sys.stdout.write(
            f"\n{EVENTS:,} events, {RATE:g} pushes/s: migrated in {migrated_seconds:.1f} s;"
            f" {promised.acks:,} ACKs, answers {dict(sorted(carriers.sent.answers.items()))}; the"
            f" longest time without an ACK {max(gaps):.2f} s; a push waited p99"
            f" {percentile(waited, 0.99):.2f} s, longest {waited[-1]:.2f} s; verify right\n"
        )
        assert max(gaps) < 1.0


def _service(dsns: postgres.Server, folder: Path) -> Service:
    settings = {**_SETTINGS, "STATESVC_SEALER_CHECKPOINT_FILE": str(folder / "checkpoint")}
    return Service(
        service_dsn=dsns.service_dsn, owner_dsn=dsns.owner_dsn, folder=folder, settings=settings
    )


async def _fill(place: Place, dsns: postgres.Server, folder: Path) -> None:
    await waiting(partial(histories, EVENTS // SCANS))(place)
    await place.execute("UPDATE statesvc.subscription SET deleted_at = statesvc.clock()", *RELEASE)
    async with running(_service(dsns, folder), "worker", "worker", "sealer"):
        await until_false(lambda: place.value(_IS_BUSY), pause_seconds=1)


async def _replace_all(crew: Crew, settings: Mapping[str, str]) -> None:
    for member in crew.members:
        await member.give_way(Post(role=member.post.role, settings=settings))
        await asyncio.sleep(PAUSE_SECONDS)
