"""A real ingress on a real database, and a line to it that can be cut."""

import io
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from psycopg import AsyncConnection

from events.carriers.carrier import (
    Ack,
    Basic,
    Carrier,
    Hmac,
    OAuthToken,
    RsaSha256,
    SharedHeader,
    ShipperChoice,
    UrlToken,
)
from events.crypto.keyring import Keyring
from events.crypto.sealing import MasterKeys, SealingKey
from statesvc.database.pool import Pool, PoolLimits, make_pool
from statesvc.http.app import Server, build_app
from statesvc.http.keys.api_keys import Keys
from statesvc.ingress.group_commit import GroupCommit
from statesvc.ingress.webhooks import build_ingress
from statesvc.settings.carrier_settings import read_webhook_secrets
from statesvc.settings.service_settings import load_settings
from statesvc.spool.drainer import ServerClock
from statesvc.spool.spool import Spool
from statesvc.spool.spooling import Spooling
from statesvc.telemetry.logs import configure_logging
from statesvc.telemetry.metrics import Telemetry

LIMITS = PoolLimits(
    connections_max=4,
    acquire_seconds=0.5,
    statement_seconds=1,
    lock_seconds=1,
    idle_in_transaction_seconds=5,
)
BOOTSTRAP = "bootstrap-key-of-the-tests"
# written nowhere
SECRET = "Zq9SECRET"
SECRETS = {
    "STATESVC_WEBHOOK_SECRET_ACME": "old,new",
    "STATESVC_WEBHOOK_SECRET_SIGNED": "s",
    "STATESVC_WEBHOOK_SECRET_TOKENS": "id:sec ret",
    "STATESVC_WEBHOOK_SECRET_CHOSEN": "user:password",
}


def carrier(carrier_id: str, *authentication: Any, **more: Any) -> Carrier:
    return Carrier(
        carrier_id=carrier_id,
        name=carrier_id,
        normalizers={},
        stable="1",
        formats=("json",),
        authentication=authentication,
        **more,
    )


CARRIERS = (
    carrier("acme", SharedHeader(header="credential"), Basic(), UrlToken(), body_bytes_max=100_000),
    carrier(
        "signed",
        Hmac(header="X-Sign"),
        ack=Ack(status=202, content_type="text/xml", body=b"<Head>OK</Head>"),
    ),
    carrier("nosecret", SharedHeader(header="credential")),
    carrier("tokens", OAuthToken()),
    carrier("chosen", Hmac(header="X-Sign"), ShipperChoice(default=())),
    carrier(
        "published",
        RsaSha256(signature_header="X-Sign", timestamp_header="X-Time", key_id_header="X-Key"),
    ),
)


class Wakes(list[str]):
    def wake(self, channel: str) -> None:
        self.append(channel)


@dataclass
class Site:
    """A served ingress: post to it, read what it stored, look at what it told."""

    session: aiohttp.ClientSession
    port: int
    dsn: str
    keyring: Keyring
    telemetry: Telemetry
    group_commit: GroupCommit
    wakes: Wakes = field(default_factory=Wakes)

    async def post(
        self,
        body: Any,
        carrier_id: str = "acme",
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> tuple[int, Any, Any]:
        named = {"credential": "new"} if headers is None else dict(headers)
        url = f"http://127.0.0.1:{self.port}/v1/webhooks/{carrier_id}{query}"
        async with self.session.post(url, data=body, headers=named) as answer:
            is_json = answer.content_type in {"application/json", "application/problem+json"}
            return (
                answer.status,
                (await answer.json(content_type=None) if is_json else await answer.read()),
                answer.headers,
            )

    async def rows(self, query: Any) -> list[Any]:
        async with await AsyncConnection.connect(self.dsn) as connection:
            return await (await connection.execute(query)).fetchall()


Serve = Callable[..., Awaitable[Site]]


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(
        master=MasterKeys([secrets.token_bytes(32)]),
        digest_key=secrets.token_bytes(32),
        inbox=SealingKey.fresh(),
    )


@pytest.fixture
async def pool(database: Any) -> AsyncIterator[Pool]:
    async with make_pool(database.service_dsn, name="test ingress", limits=LIMITS) as pool:
        yield pool


@pytest.fixture
async def serve(database: Any, keyring: Keyring) -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def serve(
            *,
            dsn: str | None = None,
            unsigned: tuple[str, ...] = (),
            more: dict[str, Any] | None = None,
            spool: Spool | None = None,
            **limits: Any,
        ) -> Site:
            loaded = load_settings()
            ingress_settings = loaded.ingress.model_copy(
                update={"allow_unsigned_webhooks": frozenset(unsigned), **limits}
            )
            settings = replace(
                loaded,
                ingress=ingress_settings,
                webhook_secrets_by_carrier=read_webhook_secrets(SECRETS),
                **(more or {}),
            )
            pool = make_pool(dsn or database.service_dsn, name="test ingress", limits=LIMITS)
            await pool.open(wait=True)
            stack.push_async_callback(pool.close)
            telemetry, wakes = Telemetry(), Wakes()
            stack.callback(telemetry.close)
            keys = Keys(pool, bootstrap_key=BOOTSTRAP)
            spooling = None
            if spool is not None:
                spooling = Spooling(
                    spool,
                    clock=ServerClock(),
                    dsn=dsn or database.service_dsn,
                    pool=pool,
                    waker=wakes,
                )
            ingress = build_ingress(
                settings,
                carriers={carrier.carrier_id: carrier for carrier in CARRIERS},
                pool=pool,
                keyring=keyring,
                keys=keys,
                waker=wakes,
                telemetry=telemetry,
                process="test",
                local_data=None,
                spooling=spooling,
            )
            if spooling is not None:
                stack.push_async_callback(spooling.close)
                spooling.start()
            await ingress.group_commit.start()
            stack.push_async_callback(ingress.group_commit.stop, grace_seconds=5)
            server = Server(
                build_app(ingress.routes, keys=keys), host="127.0.0.1", port=0, grace_seconds=2
            )
            port = await server.start()
            stack.push_async_callback(server.stop)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            return Site(
                session, port, database.service_dsn, keyring, telemetry, ingress.group_commit, wakes
            )

        yield serve


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Capture all that this process logs, whatever library does."""
    stream = io.StringIO()
    configure_logging(process="ingress", level="debug", stream=stream)
    levels = {
        name: logging.getLogger(name).level
        for name in ("aiohttp.access", "aiohttp.server", "aiohttp.web", "asyncio", "psycopg")
    }
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield stream
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    configure_logging(process="test")
