"""A shared port for `ingress` and `api`: each answers its own requests on any connection."""

import asyncio
import re
import socket
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from statesvc.http.app import Server
from statesvc.http.connections.client_connection import Sharing
from statesvc.http.connections.handoff import Handoff
from statesvc.http.problem import Code, Problem
from statesvc.roles.shutdown import Component

WEBHOOKS: Final = "/v1/webhooks/"
HEALTH: Final = frozenset({"/livez", "/readyz"})
_TARGET: Final = re.compile(
    rb"[\r\n]{0,8}[A-Za-z]{1,20} (?:([^ ?\r\n]{%d})|([^ ?\r\n]*)[ ?\r\n])" % len(WEBHOOKS)
)
_UNDECIDED_BYTES_MAX: Final = 64


def path_begins(head: bytes) -> str | None:
    """Return the path at the beginning of a request, as far as it is needed; None: too little has
    come. Empty: this is no HTTP.
    """
    match = _TARGET.match(head)
    if match is None:
        return None if len(head) < _UNDECIDED_BYTES_MAX else ""
    return (match[1] or match[2]).decode("latin-1")


def is_webhook(head: bytes) -> bool | None:
    path = path_begins(head)
    return None if path is None else path == WEBHOOKS


def is_for_ingress(head: bytes) -> bool | None:
    """Return whether `ingress` answers: webhooks, and health checks of the port."""
    path = path_begins(head)
    return None if path is None else path == WEBHOOKS or path in HEALTH


def is_for_api(head: bytes) -> bool | None:
    """Return whether `api` answers: everything else that looks like a request."""
    path = path_begins(head)
    return None if path is None else path not in {"", WEBHOOKS, *HEALTH}


class SharedPort:
    """The end of `ingress`, which owns the port, or that of `api`.

    `api` listens on a port of its own as well, where it also answers for its own health.
    """

    def __init__(self, path: Path, *, is_ingress: bool) -> None:
        self._handoff = Handoff(path, listens=not is_ingress, adopt=self._adopt)
        self._adopted = Sharing(
            recipient=self._handoff,
            is_theirs=is_for_api if is_ingress else is_for_ingress,
            returns_idle=not is_ingress,
        )
        self.accepted = Sharing(
            recipient=self._handoff, is_theirs=is_for_api if is_ingress else is_webhook
        )
        self._server: Server | None = None
        self._adopting: set[asyncio.Task[None]] = set()

    def part(self, server: Server) -> Component:
        """Connect the two as long as the process works."""
        self._server = server
        return Component(name="handoff", run=self._handoff.run, stop=self._handoff.stop)

    @property
    def is_up(self) -> bool:
        return self._handoff.is_up

    def unready(self) -> str | None:
        """Return why the port is not whole yet.

        Once it was, webhooks alone decide: they do not wait for an `api` that starts again.
        """
        return None if self._handoff.was_up else "the api has not started yet"

    # as `Handoff` calls it
    def _adopt(self, client: socket.socket, head: bytes, is_shared: bool) -> None:  # noqa: FBT001
        if self._server is None:
            client.close()
            return
        adopting = asyncio.create_task(
            self._server.adopt(client, head, sharing=self._adopted, is_shared=is_shared),
            name="adopt",
        )
        self._adopting.add(adopting)
        adopting.add_done_callback(self._adopting.discard)


@web.middleware
async def without_api(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a call that could not be handed to `api`: it is away, or the call came in one piece
    with a webhook before it.
    """
    if request.path.startswith(WEBHOOKS) or request.path in HEALTH:
        return await handler(request)
    raise Problem(Code.API_UNAVAILABLE, "webhooks are taken, the API is not there now; try again")
