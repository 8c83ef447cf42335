"""The server of an `ingress` that cannot start yet: it answers each push with 503 and the
reason.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from statesvc.database.pool import Connections
from statesvc.http.app import Server, build_app
from statesvc.http.health import health_routes
from statesvc.http.keys.api_keys import Keys
from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import Code, Problem


@dataclass(frozen=True, slots=True)
class Unready:
    why: str

    async def failing(self) -> Mapping[str, str]:
        return {"database": self.why}

    async def refuse(self, _request: web.Request) -> web.StreamResponse:
        raise Problem(Code.DATABASE_UNAVAILABLE, f"{self.why}; send it again")


@asynccontextmanager
async def refusing(host: str, port: int, why: str, pool: Connections) -> AsyncIterator[None]:
    """Answer at this address with the reason for the time of the block."""
    unready = Unready(why)
    contract: Operation[None] = operation(
        operation_id="receive_webhook",
        summary="Receive a message that a carrier pushes",
        scope=None,
        carrier_authenticated=True,
        tag="pushes",
        problems=(Code.DATABASE_UNAVAILABLE,),
        checked=False,
        deadline_seconds=None,
    )
    routes = [
        Route("POST", "/v1/webhooks/{carrier_id}", unready.refuse, contract),
        *health_routes(unready),
    ]
    server = Server(build_app(routes, keys=Keys(pool)), host=host, port=port, grace_seconds=1)
    await server.start()
    try:
        yield
    finally:
        await server.stop()
