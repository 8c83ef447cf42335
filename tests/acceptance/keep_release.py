"""The database of a release as its users have it, kept as data:
`python -m tests.acceptance.keep_release` keeps that of the code here.

It lives a little under all roles: carriers of the demo push, subscribers are told, someone is
erased, a number is awaited. Kept are its dump, a head of its log, a bundle of evidence, and what
its API answered; a second database with a month of the log and days of bodies in archives; and, in
`migrations/released.sha256`, the digests of the numbered files, which are never edited from then
on. Until a release is cut it may be kept anew.
"""

import asyncio
import gzip
import json
import random
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.test_utils import TestServer

from statesvc import __version__
from statesvc.addons.demo.traffic import pushes
from statesvc.database.migration_files import read_migrations
from statesvc.database.migrator import migrate
from statesvc.database.pool import make_pool
from statesvc.database.postgres_programs import MAJOR, programs
from statesvc.files.archive_folder import files_of
from statesvc.telemetry.metrics import Telemetry
from statesvc.worker.batch_context import BatchContext
from tests.acceptance.processes import Service, running, until_false
from tests.acceptance.stories import ups_alert
from tests.migrations.kept_release import DIGESTS, FOLDER, KeptRelease
from tests.world import body_archiver, log_archiver, postgres
from tests.world.database import Database
from tests.world.log_builder import log_builder
from tests.world.worker_harness import ACME, CARRIER_ID, LIMITS, WorkerHarness

ERASED: Final = "1ZKEPTERASED000001"
ANSWERS: Final = ("", "/history", "/audit")
_PUSHES: Final = 150
_SHIPMENTS: Final = 15
_IS_BUSY: Final = """
    SELECT EXISTS (SELECT FROM statesvc.unsealed)
        OR EXISTS (SELECT FROM statesvc.outbox JOIN statesvc.subscription USING (subscription_id) WHERE disabled_at IS NULL)
"""
_SERVER_SPECIFIC: Final = ("\\restrict", "\\unrestrict", "SET transaction_timeout")
"""Lines of pg_dump that another version of PostgreSQL, or a client that is not psql, does not
know.
"""


async def _live(service: Service, subscriber: str) -> None:
    for wish in ({"url": f"{subscriber}/kept"}, {"url": f"{subscriber}/gone", "payload": "full"}):
        status, answer = await service.post(
            "/v1/subscriptions", json.dumps(wish), **{"Content-Type": "application/json"}
        )
        assert status == 201, answer
    status, answer = await _put(
        service, "/v1/shipments/ups/1ZKEPTNEVERHEARD01/awaited", {"hours": 1}
    )
    assert status in {200, 201}, answer
    for push in islice(pushes(random.Random(1), lambda: datetime.now(UTC)), _PUSHES):
        await service.post(
            f"/v1/webhooks/{push.carrier_id}", push.body, **{"Content-Type": push.content_type}
        )
    for day, code in enumerate(("M/MP", "I/OR", "D/FS"), start=1):
        await service.webhook(
            "ups",
            ups_alert(ERASED, code, day=day, minute=600, text="Scan", signer="R. Recipient").body,
        )
    await service.drained()
    await service.command("erase", "ups", ERASED, "--why", "kept release")
    await until_false(lambda: service.value(_IS_BUSY))


async def _put(service: Service, path: str, body: object) -> tuple[int, Any]:
    async with service.session.put(f"{service.api.url}{path}", json=body) as answer:
        return answer.status, await answer.json()


async def _keep(service: Service, kept: KeptRelease, superuser_dsn: str) -> None:
    kept.folder.mkdir(parents=True, exist_ok=True)
    shipments = await service.rows(
        "SELECT carrier_id, number FROM statesvc.stream ORDER BY carrier_id DESC, number LIMIT %s",
        _SHIPMENTS,
    )
    await service.command("evidence", *shipments[0], "--out", str(kept.evidence))
    await until_false(lambda: service.value(_IS_BUSY))
    async with service.session.get(f"{service.api.url}/v1/checkpoint") as answer:
        kept.head.write_text(await answer.text())
    _, keys = await service.get("/v1/checkpoint/keys")
    kept.keys.write_text("".join(f"{key['key']}\n" for key in keys["items"]))
    paths = [
        f"/v1/shipments/{carrier}/{number}{part}"
        for carrier, number in shipments
        for part in ANSWERS
    ]
    answers = {path: await service.get(path) for path in [*paths, "/v1/subscriptions"]}
    (kept.folder / "answers.json.gz").write_bytes(
        gzip.compress(json.dumps(answers, sort_keys=True).encode(), mtime=0)
    )
    dump = await asyncio.to_thread(_dump, superuser_dsn)
    (kept.folder / "database.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))


async def _keep_archived(kept: KeptRelease, database: Database) -> None:
    """Keep two months of a log: the first one is archived, as is each day of bodies
    that is over for long.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def wait(_seconds: float) -> None:
            await database.clock.advance(60)

        async with (
            log_builder(database) as log,
            make_pool(database.service_dsn, name="kept", limits=LIMITS) as pool,
        ):
            context = BatchContext(
                pool=pool,
                keyring=log.keyring,
                carriers={CARRIER_ID: ACME},
                telemetry=Telemetry(),
                worker="worker-1",
            )
            harness = WorkerHarness(context, log.connection, database, log.keyring)
            await harness.ingest({"number": "A1", "status": "in_transit"})
            months = log_archiver.Archiver(
                database, log, log_archiver.archiving(folder, log.keyring, wait)
            )
            await months.two_months()
            days = body_archiver.body_archiving(folder, log.keyring)
            archiver = body_archiver.Archiver(
                harness, days, database.owner_dsn, database.service_dsn
            )
            await archiver.run_pass()
            await months.archived()
        dump = await asyncio.to_thread(_dump, database.superuser_dsn)
        with zipfile.ZipFile(kept.archived, "w", zipfile.ZIP_DEFLATED) as archived:
            archived.writestr("database.sql", dump)
            for path in files_of(folder):
                archived.write(str(path), path.name)


def _dump(superuser_dsn: str) -> str:
    command: list[str | Path] = [
        programs(MAJOR) / "pg_dump",
        "--no-owner",
        "--no-privileges",
        "--rows-per-insert=200",
        superuser_dsn,
    ]
    dump = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    return "".join(
        line for line in dump.splitlines(keepends=True) if not line.startswith(_SERVER_SPECIFIC)
    )


def _digests() -> Iterator[str]:
    for migration in read_migrations().migrations:
        yield f"{migration.sha256}  {migration.label}.sql\n"


async def _main(server: postgres.Server) -> None:
    kept = KeptRelease(FOLDER / __version__)
    own = server.on(postgres.create_database(server, "template1"))
    await migrate(own.owner_dsn, own.service_dsn)
    async with AsyncExitStack() as stack:
        app = web.Application()
        app.router.add_post("/kept", _accept)
        app.router.add_post("/gone", _gone)
        subscriber = TestServer(app, host="127.0.0.1")
        await subscriber.start_server()
        stack.push_async_callback(subscriber.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = Service(
            service_dsn=own.service_dsn, owner_dsn=own.owner_dsn, folder=folder, settings={}
        )
        await stack.enter_async_context(running(service, "api", "worker", "notifier", "sealer"))
        await _live(service, f"http://127.0.0.1:{subscriber.port}")
        await _keep(service, kept, own.superuser_dsn)
    await _keep_archived(kept, Database.of(server.on(postgres.create_database(server))))
    DIGESTS.write_text("".join(_digests()))


async def _accept(_request: web.Request) -> web.Response:
    return web.Response(status=204)


async def _gone(_request: web.Request) -> web.Response:
    return web.Response(status=410)


if __name__ == "__main__":
    postgres.claim_folder()
    try:
        asyncio.run(_main(postgres.running_server()))
    finally:
        postgres.close_connections()
        postgres.release_folder()
