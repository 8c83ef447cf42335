"""`POST /v1/webhooks/{carrier_id}`: authenticate, seal, store, and only then acknowledge in the carrier's own words.

A body is stored as it came and never read here: what we cannot understand is acknowledged too, because to several
carriers any other answer than a yes is final.
"""

import time
from collections.abc import Sequence
from typing import Final, assert_never

import orjson
from aiohttp import hdrs, web

from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.http.api_keys import Keys
from statesvc.http.operation import Route, operation
from statesvc.http.problem import OK, Code, Problem
from statesvc.http.scope import Scope
from statesvc.ingress.bounds import DiskRoom, MemoryBound
from statesvc.ingress.carrier_door import Door, Doors
from statesvc.ingress.group_commit import GroupCommit, Refusal
from statesvc.ingress.put import Stored
from statesvc.ingress.request_body import check_head, read_body
from statesvc.telemetry.metrics import Telemetry

MESSAGE_ID_HEADER: Final = "Statesvc-Message-Id"
_DISK_RETRY_SECONDS: Final = 60


class Webhooks:
    """The handler with what it needs; one for all carriers."""

    def __init__(
        self,
        *,
        doors: Doors,
        keys: Keys,
        keyring: Keyring,
        group_commit: GroupCommit,
        memory: MemoryBound,
        disk: DiskRoom,
        telemetry: Telemetry,
    ) -> None:
        self._doors = doors
        self._keys = keys
        self._keyring = keyring
        self._group_commit = group_commit
        self._memory = memory
        self._disk = disk
        self._duration = telemetry.ingest_ack_duration
        self._duplicates = telemetry.ingest_duplicates

    def routes(self) -> Sequence[Route]:
        """The call."""
        contract = operation(
            summary="A carrier pushes a message",
            description="Authenticated by the carrier's own scheme on the raw bytes, or by an API key with scope `ingest`. The answer "
            "means that the message is durable; it is the carrier's own ACK, by default `{message_id, duplicate}`.",
            scope=None,
            tag="webhooks",
            statuses={OK: "the message is durable; header Statesvc-Message-Id names it"},
            problems=(
                Code.BAD_SIGNATURE,
                Code.UNSIGNED_CARRIER,
                Code.UNKNOWN_CARRIER,
                Code.TOO_LARGE,
                Code.UNSUPPORTED_CONTENT_ENCODING,
                Code.DATABASE_UNAVAILABLE,
                Code.NOT_DURABLE,
                Code.OVERLOADED,
                Code.STORAGE_LOW,
                Code.SIGNING_KEYS_UNAVAILABLE,
            ),
            checked=False,
            deadline_seconds=None,
        )
        return [Route("POST", "/v1/webhooks/{carrier_id}", self.receive, contract)]

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Answers one push, and records how long that took."""
        started = time.perf_counter()
        door = self._doors.get(request.match_info["carrier_id"])
        if door is None:
            raise Problem(Code.UNKNOWN_CARRIER, "`statesvc carriers` lists the carriers that may push")
        attributes = {"carrier": door.carrier.carrier_id, "outcome": "error"}
        try:
            stored = await self._store(request, door)
            attributes["outcome"] = "duplicate" if stored.duplicate else "accepted"
        except Problem as problem:
            if problem.status < 500:
                attributes["outcome"] = "rejected"
            raise
        finally:
            self._duration.record(time.perf_counter() - started, attributes)
        if stored.duplicate:
            self._duplicates.add(1, {"carrier": door.carrier.carrier_id})
        return _acknowledgement(door, stored)

    async def _store(self, request: web.Request, door: Door) -> Stored:
        body = await self._authenticated_body(request, door)
        if not self._disk.is_enough():
            raise Problem(
                Code.STORAGE_LOW,
                "the database's disk is nearly full; nothing is taken until there is room",
                headers={hdrs.RETRY_AFTER: str(_DISK_RETRY_SECONDS)},
            )
        carrier_id = door.carrier.carrier_id
        outcome = await self._group_commit.put(seal_message(self._keyring, carrier_id, body, door.kept_headers.document(request.headers)))
        if isinstance(outcome, Stored):
            return outcome
        raise _problem(outcome)

    async def _authenticated_body(self, request: web.Request, door: Door) -> bytes:
        admitted = door.admits(request)
        opened = admitted and door.opens_by_head(request)
        if not opened and not (admitted and door.may_open_by_body(request)):
            # nothing that a body could prove: it is not even read
            opened = await self._has_key(request)
            if not opened:
                raise door.refusal()
        bytes_max = door.carrier.body_bytes_max
        check_head(request, bytes_max=bytes_max, memory=self._memory)
        body = await read_body(request, bytes_max=bytes_max, memory=self._memory)
        if opened or (admitted and await door.opens_by_body(request, body)) or await self._has_key(request):
            return body
        raise door.refusal()

    async def _has_key(self, request: web.Request) -> bool:
        caller = await self._keys.caller(request)
        return caller is not None and caller.has(Scope.INGEST)


def _acknowledgement(door: Door, stored: Stored) -> web.Response:
    ack = door.carrier.ack
    body = ack.body
    if body is None:
        body = orjson.dumps({"message_id": stored.message_id, "duplicate": stored.duplicate})
    headers = {MESSAGE_ID_HEADER: str(stored.message_id), hdrs.CONTENT_TYPE: ack.content_type}
    return web.Response(body=body, status=ack.status, headers=headers)


def _problem(refusal: Refusal) -> Problem:
    match refusal:
        case Refusal.DATABASE_AWAY:
            return Problem(Code.DATABASE_UNAVAILABLE, "the database does not answer; send it again, a retry is recognised")
        case Refusal.TOO_SLOW | Refusal.NOT_STORED | Refusal.ROW_REFUSED:
            return Problem(Code.NOT_DURABLE, "the message is not known to be durable; send it again, a retry is recognised")
        case Refusal.OVERLOADED:
            return Problem(Code.OVERLOADED, "too many bodies are in memory; send it again shortly")
        case Refusal.STOPPING:
            return Problem(Code.OVERLOADED, "this process is stopping; send it again, another one takes it")
        case _:
            assert_never(refusal)
