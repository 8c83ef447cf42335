"""Subscriptions over cells: one call makes, changes or ends a subscription in every cell, under one id and with one secret.

Nothing is stored here, and no cell waits for another. A cell that does not take a call is named in `partial`, and the call is repeated:
each is the same once or many times. A rate is divided among the cells that have carriers of the subscription.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import orjson
from aiohttp import hdrs, web

from statesvc.gateway.cell_client import CellClient, Gathered, RefusedError, one_or_all, unavailable
from statesvc.http.middleware import whole_body
from statesvc.http.operation import Handler, Route, answer, operation
from statesvc.http.problem import CREATED, NO_CONTENT, OK, Code, Problem, Violation
from statesvc.subscriptions.subscription_secrets import Secret, SignatureKind

PATH: Final = "/v1/subscriptions"
_ONE: Final = PATH + "/{subscription_id}"
_NOT_FOUND: Final = 404
_OF_A_CELL: Final = ("state", "rate_per_second", "disabled_why", "missed_since", "failing", "limiter")
_DESCRIBED: Final = (
    "In every cell, under one id; what differs is under `cells`. Repeat a call that a cell missed (docs/cells.md): "
    "it is the same once or many times."
)
_STATES: Final = ("active", "paused", "disabled")
"""The later, the more it needs someone."""


@dataclass(frozen=True, slots=True)
class SubscriptionsOverCells:
    """The handlers."""

    cells: CellClient

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Under an id and a secret that are made here, or that the caller chose. 201 once any cell has it: the secret is in the answer."""
        wish = await _document(request)
        is_chosen = request.method == hdrs.METH_PUT
        if "secret" in wish and not is_chosen:
            violation = Violation("/body/secret", "PUT takes a secret of yours, and an id")
            raise Problem(Code.INVALID_REQUEST, "the body breaks the contract", violations=[violation])
        path = _path_of(request) if is_chosen else f"{PATH}/{uuid4()}"
        kind: SignatureKind = "ed25519" if wish.get("signature") == "ed25519" else "hmac"
        if kind == "ed25519" and not is_chosen:
            await self._require_all(request, path)
        made = None if is_chosen else Secret.fresh(kind)
        secret = {} if made is None else {"secret": made.written}
        share = self._share(wish.get("rate_per_second"), wish.get("carriers"))
        gathered = await self.cells.ask_all(request, "PUT", path, {**wish, **share, **secret})
        taken = _taken(gathered)
        status = CREATED if any(each.status == CREATED for each in gathered.answers.values()) else OK
        headers = {"Location": path} if status == CREATED else None
        return answer({**self._merged(taken), **_shown_once(made)}, status=status, headers=headers)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """One, with what is each cell's own."""
        return answer(self._merged(await self._read(request)))

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Changes it in every cell."""
        changes = await _document(request)
        if len(changes.keys() & {"carriers", "rate_per_second"}) == 1:
            # each cell's share hangs on both
            known = {**self._merged(await self._read(request)), **changes}
            changes |= self._share(known["rate_per_second"], known["carriers"])
        else:
            changes |= self._share(changes.get("rate_per_second"), changes.get("carriers"))
        return answer(self._merged(_complete(await self.cells.ask_all(request, "PATCH", request.rel_url.raw_path, changes))))

    async def switch(self, request: web.Request) -> web.StreamResponse:
        """Pauses, resumes or ends it in every cell."""
        taken = _complete(await self.cells.ask_all(request, request.method, request.rel_url.raw_path))
        return web.Response(status=NO_CONTENT) if request.method == hdrs.METH_DELETE else answer(self._merged(taken))

    async def rotate_secret(self, request: web.Request) -> web.StreamResponse:
        """One new secret in every cell."""
        stored = await self._read(request)
        kind = request.query.get("signature", next(iter(stored.documents.values()))["signature"])
        if kind == "ed25519" and stored.partial:
            raise unavailable(stored.partial)
        made = Secret.fresh("ed25519" if kind == "ed25519" else "hmac")
        grace = {"grace_hours": _number(request.query["grace_hours"])} if "grace_hours" in request.query else {}
        path = f"{_path_of(request)}/secret"
        taken = _taken(await self.cells.ask_all(request, "PUT", path, {"secret": made.written, **grace}))
        return answer({**self._merged(taken), **_shown_once(made)})

    async def put_secret(self, request: web.Request) -> web.StreamResponse:
        """The caller's new secret in every cell."""
        document = await _document(request)
        return answer(self._merged(_complete(await self.cells.ask_all(request, "PUT", request.rel_url.raw_path, document))))

    async def _read(self, request: web.Request) -> Gathered:
        """Raises the problem 404 where no cell has it, and 503 where one that is away may."""
        return _taken(await self.cells.ask_all(request, "GET", _path_of(request)))

    async def _require_all(self, request: web.Request, path: str) -> None:
        """That every cell answers: a pair whose secret half is shown to no one cannot be brought to the others later."""
        asked = await self.cells.ask_all(request, "GET", path)
        if asked.partial:
            raise unavailable(asked.partial)

    def _share(self, rate: object, carriers: object) -> dict[str, float]:
        """What each cell may send a second, for all of them to keep the rate together."""
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            return {}
        return {"rate_per_second": rate / self._senders(carriers)}

    def _senders(self, carriers: object) -> int:
        """How many cells have carriers of these; None: of any."""
        if not isinstance(carriers, list) or not carriers:
            return len(self.cells.directory.cells)
        return len({self.cells.directory.cell_of(carrier) for carrier in carriers if isinstance(carrier, str)}) or 1

    def _merged(self, gathered: Gathered) -> dict[str, Any]:
        """As the first cell has it; what is each cell's own under `cells`, the worst state above, the rate of all together."""
        documents = gathered.documents
        first = next(iter(documents.values()))
        own = {name: {member: one[member] for member in _OF_A_CELL if member in one} for name, one in documents.items()}
        rate = first["rate_per_second"]
        return {
            **{member: value for member, value in first.items() if member != "limiter"},
            "state": max((one["state"] for one in documents.values()), key=_STATES.index),
            "rate_per_second": None if rate is None else rate * self._senders(first["carriers"]),
            "cells": own,
            "partial": gathered.partial,
        }


async def _document(request: web.Request) -> dict[str, Any]:
    try:
        document = orjson.loads(await whole_body(request))
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise Problem(Code.INVALID_REQUEST, "the body must be a JSON object")
    return document


def _path_of(request: web.Request) -> str:
    """Of the subscription, as it was sent."""
    return "/".join(request.rel_url.raw_path.split("/")[:4])


def _taken(gathered: Gathered) -> Gathered:
    """The cells that took the call; `partial`: all others. Raises the first refusal, or the problem 503, where none did."""
    taken = {name: each for name, each in gathered.answers.items() if not each.is_refusal}
    if not taken:
        refusals = list(gathered.answers.values())
        other = next((each for each in refusals if each.status != _NOT_FOUND), None)
        if other is None and gathered.partial:
            # one that is away may have it: 404 would be a claim
            raise unavailable(gathered.partial)
        raise RefusedError(other or refusals[0])
    return Gathered(taken, [*gathered.partial, *(name for name in gathered.answers if name not in taken)])


def _complete(gathered: Gathered) -> Gathered:
    """The same, but a cell that is away is the problem 503, and another refusal than 404 is the answer: the call has to be repeated."""
    taken = _taken(gathered)
    for each in gathered.answers.values():
        if each.is_refusal and each.status != _NOT_FOUND:
            raise RefusedError(each)
    if gathered.partial:
        raise unavailable(gathered.partial)
    return taken


def _shown_once(made: Secret | None) -> Mapping[str, str | None]:
    """Of a secret that was made here. Of a pair the secret half leaves the service for no one."""
    return {} if made is None else {"secret": made.shown if made.kind == "hmac" else None}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        # the cells say what is wrong with it
        return text


def routes(cells: CellClient) -> Sequence[Route]:
    """The calls that span cells; `test`, `attempts`, `replay` and portal links are of one cell."""
    calls = SubscriptionsOverCells(cells)
    handlers: Sequence[tuple[str, str, Handler, str, str]] = (
        ("POST", PATH, calls.create, "create_subscription", "Subscribe"),
        ("PUT", _ONE, calls.create, "put_subscription", "Subscribe under a chosen id and secret"),
        ("GET", _ONE, calls.show, "get_subscription", "Show a subscription"),
        ("PATCH", _ONE, calls.change, "change_subscription", "Change a subscription"),
        ("DELETE", _ONE, calls.switch, "delete_subscription", "Unsubscribe"),
        ("POST", f"{_ONE}/pause", calls.switch, "pause_subscription", "Send nothing for now"),
        ("POST", f"{_ONE}/resume", calls.switch, "resume_subscription", "Send again"),
        ("POST", f"{_ONE}/rotate-secret", calls.rotate_secret, "rotate_subscription_secret", "Make a new secret"),
        ("PUT", f"{_ONE}/secret", calls.put_secret, "put_subscription_secret", "Sign with a chosen secret"),
    )
    return [
        Route(
            method,
            path,
            one_or_all(cells, handler),
            operation(operation_id=operation_id, summary=summary, description=_DESCRIBED, scope=None, checked=False, deadline_seconds=30.0),
        )
        for method, path, handler, operation_id, summary in handlers
    ]
