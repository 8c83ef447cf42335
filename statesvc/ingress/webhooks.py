"""`POST /v1/webhooks/{carrier_id}`: authenticate, seal, store, and only then acknowledge in the
carrier's own words.

Ingress decompresses and seals the body; it never parses it. An unreadable body is acknowledged too,
because several carriers never push again after any answer but 2xx.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

import orjson
import psycopg
from aiohttp import hdrs, web

from events.carriers.carrier import Carrier
from events.crypto.keyring import Keyring
from statesvc.bodies.sealed_message import seal_message
from statesvc.database.pool import Pool
from statesvc.database.wakeups.wakeup import Wakes
from statesvc.health.ingest_report import IngestReport, LastMinute
from statesvc.http.keys.api_keys import Keys
from statesvc.http.keys.key_store import Scope
from statesvc.http.operation import Operation, Route, operation
from statesvc.http.problem import OK, Code, Problem
from statesvc.http.unknown_carrier import unknown_carrier
from statesvc.ingress.ack_counts import AckCounts
from statesvc.ingress.body_memory import MemoryBound
from statesvc.ingress.carrier_authenticator import Authenticators, CarrierAuthenticator
from statesvc.ingress.group_commit import ROW_BYTES, GroupCommit, Refusal, Stored
from statesvc.ingress.oauth import Tokens
from statesvc.ingress.request_body import ReceivedBody, check_head, read_body
from statesvc.settings.service_settings import Settings
from statesvc.spool.spooling import Spooling
from statesvc.telemetry import gauges
from statesvc.telemetry.metric import Stage
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.tracing import span, traceparent_of

MESSAGE_ID_HEADER: Final = "Statesvc-Message-Id"
_DISK_RETRY_SECONDS: Final = 60
_DISK_CHECK_SECONDS: Final = 1.0


class DiskRoom:
    """Free bytes where the database lives, measured once a second at most. Without a path (a server
    elsewhere): always enough.
    """

    def __init__(
        self, path: Path | None, *, free_bytes_min: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._free_bytes_min = free_bytes_min
        self._now = now
        self._checked_at = float("-inf")
        self._free_bytes = 0

    @property
    def free_bytes_min(self) -> int:
        return self._free_bytes_min

    def free_bytes(self) -> int | None:
        """Return the free bytes; None: the disk is not of this machine."""
        if self._path is None:
            return None
        now = self._now()
        if now >= self._checked_at + _DISK_CHECK_SECONDS:
            self._free_bytes = shutil.disk_usage(self._path).free
            self._checked_at = now
        return self._free_bytes

    def is_enough(self) -> bool:
        """Return False where another body could fill the disk that the log needs."""
        free_bytes = self.free_bytes()
        return free_bytes is None or free_bytes >= self._free_bytes_min

    def refusal(self) -> str | None:
        """Return why no webhook is taken; None: there is room."""
        if self.is_enough():
            return None
        return (
            f"storage_low: the database's disk has {(self.free_bytes() or 0) / 1e9:.2f} GB free, and below "
            f"{self._free_bytes_min / 1e9:.2f} GB (STATESVC_INGRESS_DISK_FREE_BYTES_MIN) no webhook is taken"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """The handler with what it needs; one for all carriers.

    Start `group_commit` before the server listens; stop it after the server. `refused` gets the
    problems of known carriers.
    """

    authenticators: Authenticators
    keys: Keys
    keyring: Keyring
    group_commit: GroupCommit
    memory: MemoryBound
    disk: DiskRoom
    ack_counts: AckCounts
    minute: LastMinute
    telemetry: Telemetry
    refused: Callable[[str], None] = lambda _cause: None

    @property
    def routes(self) -> Sequence[Route]:
        contract: Operation[None] = operation(
            operation_id="receive_webhook",
            summary="Receive a message that a carrier pushes",
            description="Authenticated by the carrier's own scheme on the raw bytes, or by an API key with scope `ingest`. It may be "
            "compressed (`Content-Encoding: gzip`); its bound holds for both forms, and either may be the signed one. The answer "
            "means that the message is durable; it is the carrier's own ACK, by default `{message_id, duplicate}`. Whatever is signed "
            "is taken, an object or not: to several carriers any other answer is final.",
            scope=None,
            carrier_authenticated=True,
            tag="pushes",
            is_body_optional=True,
            accepts={
                "application/json": dict[str, Any],
                "application/xml": bytes,
                "application/octet-stream": bytes,
            },
            statuses={OK: "the message is durable"},
            response_headers={
                MESSAGE_ID_HEADER: "Names the message: `GET /v1/messages/{message_id}` shows it."
            },
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
        tokens = Tokens(self.authenticators, memory=self.memory)
        return [
            Route("POST", "/v1/webhooks/{carrier_id}", self.receive, contract),
            *tokens.routes(),
        ]

    def report(self) -> IngestReport:
        acknowledged, refused = self.minute.counts()
        return IngestReport(
            acknowledged=acknowledged,
            refused=refused,
            disk_free_bytes=self.disk.free_bytes(),
            disk_free_bytes_min=self.disk.free_bytes_min,
        )

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Answer a push, and record its duration."""
        started = time.perf_counter()
        authenticator = self.authenticators.get(request.match_info["carrier_id"])
        if authenticator is None:
            raise unknown_carrier(request.match_info["carrier_id"], self.authenticators)
        carrier_id = authenticator.carrier.carrier_id
        attributes = {"carrier": carrier_id, "outcome": "error"}
        try:
            with span(self.telemetry.tracer, Stage.INGEST, {"carrier": carrier_id}):
                stored = await self._store(request, authenticator)
            attributes["outcome"] = "duplicate" if stored.duplicate else "accepted"
        except Problem as problem:
            if problem.status < 500:
                attributes["outcome"] = "rejected"
            self.refused(problem.code.value)
            self.minute.refused(problem.code.value)
            self.ack_counts.refused(carrier_id)
            raise
        except Exception as error:
            # answered as the database being away, or as a defect
            self.minute.refused(
                (
                    Code.DATABASE_UNAVAILABLE
                    if isinstance(error, psycopg.Error)
                    else Code.INTERNAL_ERROR
                ).value
            )
            raise
        finally:
            self.telemetry.ingest_ack_duration.record(time.perf_counter() - started, attributes)
        self.minute.acknowledged()
        if stored.duplicate:
            self.telemetry.ingest_duplicates.add(1, {"carrier": carrier_id})
            self.ack_counts.duplicate(carrier_id)
        else:
            self.ack_counts.accepted(carrier_id, stored.message_id)
        return _acknowledgement(authenticator, stored)

    async def _store(self, request: web.Request, authenticator: CarrierAuthenticator) -> Stored:
        admitted = authenticator.accepts_address(request)
        is_proven = admitted and authenticator.is_proven_by_head(request)
        if not is_proven and not (admitted and authenticator.may_be_proven_by_body(request)):
            # nothing that a body could prove: it is not even read
            is_proven = await self._has_key(request)
            if not is_proven:
                raise authenticator.refusal()
        bytes_max = authenticator.carrier.body_bytes_max
        check_head(request, bytes_max=bytes_max)
        body, held = await read_body(
            request, bytes_max=bytes_max, memory=self.memory, overhead_bytes=ROW_BYTES
        )
        try:
            if not is_proven:
                await self._require_proof(request, authenticator, body)
            self._require_disk()
            carrier_id = authenticator.carrier.carrier_id
            headers = authenticator.retained_headers.document(
                request.headers, traceparent=traceparent_of()
            )
            message = seal_message(self.keyring, carrier_id, body.content, headers)
        except BaseException:
            held.release()
            raise
        outcome = await self.group_commit.put(message, held)
        if isinstance(outcome, Stored):
            return outcome
        raise _problem(outcome)

    async def _require_proof(
        self, request: web.Request, authenticator: CarrierAuthenticator, body: ReceivedBody
    ) -> None:
        for form in body.signed_forms:
            if await authenticator.is_proven_by_body(request, form):
                return
        if not await self._has_key(request):
            raise authenticator.refusal()

    def _require_disk(self) -> None:
        if not self.disk.is_enough():
            raise Problem(
                Code.STORAGE_LOW,
                "the database's disk is nearly full; nothing is taken until there is room",
                headers={hdrs.RETRY_AFTER: str(_DISK_RETRY_SECONDS)},
            )

    async def _has_key(self, request: web.Request) -> bool:
        caller = await self.keys.caller(request)
        return caller is not None and caller.has(Scope.INGEST)


def _acknowledgement(authenticator: CarrierAuthenticator, stored: Stored) -> web.Response:
    ack = authenticator.carrier.ack
    body = ack.body
    if body is None:
        body = orjson.dumps({"message_id": stored.message_id, "duplicate": stored.duplicate})
    headers = {MESSAGE_ID_HEADER: str(stored.message_id), hdrs.CONTENT_TYPE: ack.content_type}
    return web.Response(body=body, status=ack.status, headers=headers)


def _problem(refusal: Refusal) -> Problem:
    match refusal:
        case Refusal.DATABASE_AWAY:
            return Problem(
                Code.DATABASE_UNAVAILABLE,
                "the database does not answer; send it again, a retry is recognised",
            )
        case Refusal.TOO_SLOW | Refusal.NOT_STORED | Refusal.ROW_REFUSED:
            return Problem(
                Code.NOT_DURABLE,
                "the message is not known to be durable; send it again, a retry is recognised",
            )
        case Refusal.OVERLOADED:
            return Problem(Code.OVERLOADED, "too many bodies are in memory; send it again shortly")
        case Refusal.STOPPING:
            return Problem(
                Code.OVERLOADED, "this process is stopping; send it again, another one takes it"
            )
        case _:
            assert_never(refusal)


def build_ingress(
    settings: Settings,
    *,
    carriers: Mapping[str, Carrier],
    pool: Pool,
    keyring: Keyring,
    keys: Keys,
    waker: Wakes,
    telemetry: Telemetry,
    local_data: Path | None,
    process: str,
    spooling: Spooling | None = None,
    refused: Callable[[str], None] = lambda _cause: None,
) -> Webhooks:
    """Build it. `pool` has the ingress limits (500 ms to acquire, 1 s a statement); `local_data`:
    the embedded server's folder, else None.

    `process` names this start of this process.
    """
    memory = MemoryBound(
        settings.ingress.memory_bytes_max, wait_seconds=settings.ingress.wait_seconds
    )
    disk = DiskRoom(local_data, free_bytes_min=settings.ingress.disk_free_bytes_min)
    for code in (Code.DATABASE_UNAVAILABLE, Code.NOT_DURABLE, Code.OVERLOADED, Code.STORAGE_LOW):
        # Prometheus sees no increase in a series whose first value is 1
        telemetry.refusals.add(0, {"cause": code.value})
    telemetry.observe(gauges.INGEST_STORAGE_LOW, lambda: [(float(not disk.is_enough()), {})])
    return Webhooks(
        authenticators=Authenticators(carriers, settings),
        keys=keys,
        keyring=keyring,
        group_commit=GroupCommit(pool, memory=memory, waker=waker, spooling=spooling),
        memory=memory,
        disk=disk,
        ack_counts=AckCounts(pool, process=process),
        minute=LastMinute(),
        telemetry=telemetry,
        refused=refused,
    )
