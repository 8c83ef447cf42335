"""`GET /v1/feed`, `/v1/checkpoint`, `/v1/proofs/...`: the log by index, its signed heads, and proofs against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from psycopg import AsyncConnection

from statesvc.api.log_models import (
    CheckpointParameters,
    Consistency,
    ConsistencyParameters,
    Feed,
    FeedParameters,
    Inclusion,
    InclusionParameters,
    LogKeys,
)
from statesvc.database.pool import Connections
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.problem import OK, Code, Problem
from statesvc.http.response import answer
from statesvc.log.archive.log_archive import LogArchive
from statesvc.log.checkpoints import SignedHead, covering_head, latest_head
from statesvc.log.feed import MissingEntryError, read_entries
from statesvc.log.proofs import ContradictionError, place_of_event, prove_consistency, prove_inclusion
from statesvc.log.signing_keys import read_keys

_TEXT: Final = "text/plain"


@dataclass(frozen=True, slots=True)
class Log:
    """The handlers."""

    pool: Connections
    archive: LogArchive

    async def feed(self, request: web.Request) -> web.StreamResponse:
        """A stretch of entries, each printed in the very bytes that its leaf hash is of."""
        asked = parameters(request, FeedParameters)
        async with self.pool.connection() as connection:
            try:
                stretch = await read_entries(connection, begin=asked.after + 1, limit=asked.limit, archive=self.archive)
            except MissingEntryError as error:
                raise Problem(Code.INTERNAL_ERROR, str(error)) from error
        if asked.after >= max(stretch.tree_size, 1):
            raise Problem(Code.INVALID_CURSOR, f"the log has {stretch.tree_size} entries: `after` was given by another log")
        last = asked.after + len(stretch.entries)
        return answer(
            {
                "items": [
                    {
                        "index": entry.index,
                        "kind": entry.kind,
                        "leaf_hash": entry.leaf_hash.hex(),
                        "sealed_at": entry.sealed_at,
                        "entry": orjson.Fragment(entry.canonical),
                    }
                    for entry in stretch.entries
                ],
                "next_cursor": str(last) if last + 1 < stretch.tree_size else None,
                "tree_size": stretch.tree_size,
            }
        )

    async def checkpoint(self, request: web.Request) -> web.StreamResponse:
        """A signed note."""
        asked = parameters(request, CheckpointParameters)
        async with self.pool.connection() as connection:
            head = await _head(connection, asked.size)
        return web.Response(text=head.note, content_type=_TEXT, headers={hdrs.CACHE_CONTROL: "no-cache"})

    async def keys(self, _request: web.Request) -> web.StreamResponse:
        """The public halves of all keys."""
        async with self.pool.connection() as connection:
            keys = await read_keys(connection)
        shown = [{"key": str(key.verifier), "created_at": key.created_at, "retired_at": key.retired_at} for key in keys]
        return answer({"items": shown, "next_cursor": None})

    async def inclusion(self, request: web.Request) -> web.StreamResponse:
        """Where an entry stands below a head."""
        asked = parameters(request, InclusionParameters)
        async with self.pool.connection() as connection:
            index = asked.index
            if index is None:
                index = await self._index_of(connection, asked.carrier_id or "", asked.event_id or "")
            head = await _head(connection, asked.size)
            if index >= head.tree_size:
                raise Problem(Code.NOT_SEALED, f"the checkpoint covers {head.tree_size} entries, the last one is {head.tree_size - 1}")
            try:
                proof = await prove_inclusion(connection, index, head)
            except ContradictionError as error:
                raise Problem(Code.INTERNAL_ERROR, str(error)) from error
        return answer(
            {
                "index": index,
                "tree_size": head.tree_size,
                "leaf_hash": proof.leaf_hash.hex(),
                "path": [each.hex() for each in proof.path],
                "root": head.root.hex(),
                "checkpoint": head.note,
            }
        )

    async def consistency(self, request: web.Request) -> web.StreamResponse:
        """How an older tree begins a newer one."""
        asked = parameters(request, ConsistencyParameters)
        async with self.pool.connection() as connection:
            head = await _head(connection, None)
            to_size = head.tree_size if asked.to_size is None else asked.to_size
            if not asked.from_size <= to_size <= head.tree_size:
                raise Problem(Code.NOT_SEALED, f"give sizes in their order, up to {head.tree_size}, which the newest checkpoint has")
            try:
                proof = await prove_consistency(connection, asked.from_size, to_size, head)
            except ContradictionError as error:
                raise Problem(Code.INTERNAL_ERROR, str(error)) from error
        return answer(
            {
                "from": proof.first,
                "to": proof.second,
                "from_root": proof.first_root.hex(),
                "to_root": proof.second_root.hex(),
                "path": [each.hex() for each in proof.path],
                "checkpoint": head.note,
            }
        )

    async def _index_of(self, connection: AsyncConnection[Any], carrier_id: str, event_id: str) -> int:
        known, index = await place_of_event(connection, carrier_id=carrier_id, event_id=event_id, archive=self.archive)
        if not known:
            raise Problem(Code.NOT_FOUND, "the log has no such event")
        if index is None:
            raise Problem(Code.NOT_SEALED, "the event is not sealed yet: ask again in a second")
        return index


async def _head(connection: AsyncConnection[Any], size: int | None) -> SignedHead:
    head = await (latest_head(connection) if size is None else covering_head(connection, size))
    if head is None:
        raise Problem(Code.NOT_FOUND, "the log has no such checkpoint yet: it is signed within a second of what it covers")
    return head


def routes(pool: Connections, archive: LogArchive) -> Sequence[Route]:
    """The calls about the log."""
    log = Log(pool, archive)
    return [
        Route(
            "GET",
            "/v1/feed",
            log.feed,
            operation(
                summary="The log by index",
                description="All entries in their one order: never skips one that committed late, never repeats one. Ask again "
                "with `after` set to the last index. Never holds personal fields.",
                scope="audit",
                tag="log",
                parameters=FeedParameters,
                response=Feed,
                problems=(Code.INVALID_CURSOR, Code.LOG_UNAVAILABLE),
            ),
        ),
        Route(
            "GET",
            "/v1/checkpoint",
            log.checkpoint,
            operation(
                summary="The log's signed head",
                description="A C2SP tlog-checkpoint as signed note, Ed25519. Keep one elsewhere: `statesvc verify --checkpoint FILE` "
                "holds the log against it.",
                scope="read",
                tag="log",
                parameters=CheckpointParameters,
                response_types=(_TEXT,),
                statuses={OK: "the note"},
                problems=(Code.NOT_FOUND,),
            ),
        ),
        Route(
            "GET",
            "/v1/checkpoint/keys",
            log.keys,
            operation(summary="The keys of the log's heads", scope="read", tag="log", response=LogKeys),
        ),
        Route(
            "GET",
            "/v1/proofs/inclusion",
            log.inclusion,
            operation(
                summary="Prove that an entry is in the log",
                scope="read",
                tag="log",
                parameters=InclusionParameters,
                response=Inclusion,
                problems=(Code.NOT_FOUND, Code.NOT_SEALED, Code.LOG_UNAVAILABLE),
            ),
        ),
        Route(
            "GET",
            "/v1/proofs/consistency",
            log.consistency,
            operation(
                summary="Prove that the log only grew",
                scope="read",
                tag="log",
                parameters=ConsistencyParameters,
                response=Consistency,
                problems=(Code.NOT_FOUND, Code.NOT_SEALED),
            ),
        ),
    ]
