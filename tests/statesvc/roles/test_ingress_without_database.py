"""`statesvc ingress` with a spool: a start, a kill and a restart while the database is away."""

import asyncio
import base64
import secrets
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from psycopg import AsyncConnection

from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.roles.start_cache import FILE
from statesvc.shipments.stored_message import find_message
from tests.soak.proxy import Proxy
from tests.world.forked import ForkedProcess, fork
from tests.world.ports import free_port
from tests.world.waiting import until

pytestmark = pytest.mark.usefixtures("own_processes")


class Ingress:
    """The role as a process, which can be killed and started again on its port."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.environment = {
            "DATABASE_URL": dsn,
            "STATESVC_DATA_DIR": str(folder / "data"),
            "STATESVC_SPOOL_URL": f"file://{folder}/spool",
            "STATESVC_MASTER_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
            "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "ups",
            "STATESVC_WEBHOOK_SECRET_FEDEX": "secret",
            "STATESVC_METRICS_PORT": "0",
        }
        self.session = aiohttp.ClientSession(f"http://127.0.0.1:{self.port}")
        self._process: ForkedProcess | None = None
        self._lives = 0

    async def start(self) -> None:
        self._lives += 1
        self._process = await fork(
            "statesvc.__main__",
            ["ingress", "--port", str(self.port)],
            environment=self.environment,
            output=self.folder / f"log-{self._lives}",
        )

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            await self._process.wait()

    async def exit_code(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def call(self, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
        """Call as soon as it listens."""
        method = "GET" if body is None else "POST"
        async with asyncio.timeout(30):
            while True:
                try:
                    async with self.session.request(
                        method, path, data=body, headers=headers
                    ) as answer:
                        return answer.status, await answer.json(content_type=None)
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.05)

    async def push(self, body: str, carrier_id: str = "ups", **headers: str) -> tuple[int, Any]:
        return await self.call(f"/v1/webhooks/{carrier_id}", body, **headers)


@pytest.fixture
async def ingress(line_dsn: str, tmp_path: Path) -> AsyncIterator[Ingress]:
    ingress = Ingress(line_dsn, tmp_path)
    yield ingress
    await ingress.end()
    await ingress.session.close()


async def all_stored(service: AsyncConnection[Any], ids: Iterable[UUID]) -> int:
    """Wait until each id resolves; return the number of stored messages, each of which has one
    body.
    """
    for message_id in ids:
        await until(partial(find_message, service, message_id, folder=None))
    query = "SELECT count(*), count(DISTINCT message_id) FROM statesvc.body"
    ((bodies, messages),) = await (await service.execute(query)).fetchall()
    assert bodies == messages
    return int(messages)


async def test_it_starts_without_the_database_with_the_keys_of_its_last_start(
    ingress: Ingress, line: Proxy, service: AsyncConnection[Any]
) -> None:
    key_id, key = await create_key(service, name="pushes", scopes=[Scope.INGEST], created_by="test")
    await ingress.start()
    assert (await ingress.push("before"))[0] == 200
    file = ingress.folder / "data" / FILE
    await until(file.exists)
    text = await asyncio.to_thread(file.read_bytes)
    assert file.stat().st_mode & 0o777 == 0o600
    assert key_id.encode() not in text
    await ingress.end()
    line.cut()
    await ingress.start()
    status, answer = await ingress.push("during")
    assert (status, answer["duplicate"]) == (200, False)
    assert (await ingress.call("/readyz"))[0] == 200
    assert (await ingress.push("by key", "fedex", authorization=f"Bearer {key}"))[0] == 200
    assert (await ingress.push("by another", "fedex", authorization=f"Bearer {key[:-1]}x"))[
        0
    ] == 503
    line.heal()
    assert await all_stored(service, [UUID(answer["message_id"])]) == 3


async def test_without_such_a_file_it_refuses_with_the_reason(
    ingress: Ingress, line: Proxy
) -> None:
    line.cut()
    await ingress.start()
    status, answer = await ingress.push("a")
    assert (status, answer["code"]) == (503, "database_unavailable")
    assert FILE in answer["detail"]
    assert (await ingress.call("/readyz"))[0] == 503
    line.heal()

    async def is_taken() -> bool:
        # the server that refuses ends with its idle connection, which a push may have taken
        with suppress(aiohttp.ServerDisconnectedError):
            return (await ingress.push("b"))[0] == 200
        return False

    await until(is_taken, pause_seconds=0.1)


async def test_it_ends_where_the_database_that_comes_back_is_another(
    ingress: Ingress, line: Proxy, database: Any
) -> None:
    await ingress.start()
    await ingress.push("before")
    await until((ingress.folder / "data" / FILE).exists)
    await ingress.end()
    line.cut()
    await ingress.start()
    assert (await ingress.push("during"))[0] == 200
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        await connection.execute("DELETE FROM statesvc.service_key")
        await load_keyring(
            connection, parse_master_keys(ingress.environment["STATESVC_MASTER_KEY"])
        )
    line.heal()
    async with asyncio.timeout(30):
        assert await ingress.exit_code() != 0


async def test_killed_at_any_moment_it_loses_and_doubles_nothing(
    ingress: Ingress, line: Proxy, service: AsyncConnection[Any]
) -> None:
    """It is killed while it stores, keeps and drains; the carrier notes each ACK and sends no push twice."""
    acknowledged: dict[str, UUID] = {}

    async def push(number: int) -> None:
        try:
            async with ingress.session.post("/v1/webhooks/ups", data=str(number)) as answer:
                if answer.status == 200:
                    acknowledged[str(number)] = UUID((await answer.json())["message_id"])
        except aiohttp.ClientError:
            pass

    async def push_many(count: int) -> None:
        first = sent[0]
        sent[0] += count
        tasks = []
        for number in range(first, first + count):
            tasks.append(asyncio.create_task(push(number)))
            await asyncio.sleep(0.004)
        await asyncio.wait(tasks)

    sent = [0]
    await ingress.start()
    await ingress.push("first")
    await until((ingress.folder / "data" / FILE).exists)
    for life in range(6):
        pushing = asyncio.create_task(push_many(100))
        await asyncio.sleep(0.05 + life * 0.03)
        line.cut()
        await asyncio.sleep(0.2)
        if life % 2:
            line.heal()
            await asyncio.sleep(life * 0.1)
        await ingress.end()
        await pushing
        line.heal()
        await ingress.start()
        await ingress.call("/livez")
    assert len(acknowledged) > 100
    stored = await all_stored(service, acknowledged.values())
    assert stored <= 1 + sent[0], "some were stored and not acknowledged"
