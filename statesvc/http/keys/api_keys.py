"""Authentication of callers.

Keys are looked up once and remembered for at most 5 seconds, after which a revocation is in effect.

The bootstrap key needs no row: it exists as long as the setting holds it, and has scope `admin`.
"""

import asyncio
import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import psycopg
from aiohttp import hdrs, web

from statesvc.database.pool import Connections
from statesvc.http.keys.kept_keys import KeptKey, KeptKeys
from statesvc.http.keys.key_store import SQL, Scope, granted, key_hash, key_id_of
from statesvc.http.problem import Code, Problem

REMEMBERED_SECONDS: Final = 5.0
# Precision of a key's last use: not every call is a write.
NOTED_SECONDS: Final = 300
# Id, name and owner of the key that a setting holds.
BOOTSTRAP: Final = "bootstrap"
_REMEMBERED_MAX: Final = 4096
# The first word of User-Agent in calls of `statesvc mcp`.
AGENT: Final = "statesvc-mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Caller of an operation: the holder of a key, or a person at the service's own machine.

    `actor` is the name that operator actions carry; `owner` has the subscriptions that its keys
    make.
    """

    key_id: str
    name: str
    owner: str
    scopes: frozenset[Scope]
    actor: str

    def has(self, scope: Scope) -> bool:
        return scope in self.scopes


def key_holder(key_id: str, *, name: str, owner: str, scopes: frozenset[Scope]) -> Caller:
    return Caller(
        key_id=key_id, name=name, owner=owner, scopes=granted(scopes), actor=f"key:{key_id}"
    )


_BOOTSTRAP_CALLER: Final = key_holder(
    BOOTSTRAP, name=BOOTSTRAP, owner=BOOTSTRAP, scopes=frozenset({Scope.ADMIN})
)
CALLER: Final = web.RequestKey("caller", Caller)


class Keys:
    """Turns `Authorization: Bearer <key>` into a `Caller`."""

    def __init__(
        self,
        pool: Connections,
        *,
        bootstrap_key: str | None = None,
        now: Callable[[], float] = time.monotonic,
        remembered_seconds: float = REMEMBERED_SECONDS,
        kept: KeptKeys | None = None,
    ) -> None:
        """`kept`: keys to be taken while the database does not answer."""
        self._pool = pool
        self._kept = kept
        self._remembered_seconds = remembered_seconds
        self._bootstrap_hash = None if bootstrap_key is None else key_hash(bootstrap_key)
        self._now = now
        self._remembered: dict[
            tuple[str, bytes | None], tuple[float, asyncio.Task[Caller | None]]
        ] = {}

    async def caller(self, request: web.Request) -> Caller | None:
        """Return the caller; None without a good key. Database errors pass through."""
        scheme, _, key = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        holder = await self.holder(key.strip())
        if holder is None or not request.headers.get(hdrs.USER_AGENT, "").startswith(AGENT):
            return holder
        # the holder's own word: it tells a person's acts from an agent's, and gives no right
        return replace(holder, actor=f"mcp:{holder.key_id}")

    async def holder(self, key: str) -> Caller | None:
        """Return the holder of the key; None where it is not good. Database errors pass through."""
        digest = key_hash(key)
        return await self.holder_of(
            BOOTSTRAP if self._is_bootstrap(digest) else key_id_of(key), digest
        )

    async def holder_of(self, key_id: str | None, digest: bytes) -> Caller | None:
        if key_id == BOOTSTRAP and self._is_bootstrap(digest):
            return _BOOTSTRAP_CALLER
        return None if key_id is None else await self._look_up(key_id, digest)

    def _is_bootstrap(self, digest: bytes) -> bool:
        return self._bootstrap_hash is not None and hmac.compare_digest(
            digest, self._bootstrap_hash
        )

    async def by_id(self, key_id: str) -> Caller | None:
        """Return the holder of a live key by its public id: for a right that it gave away.

        Database errors pass through.
        """
        if key_id == BOOTSTRAP:
            return None if self._bootstrap_hash is None else _BOOTSTRAP_CALLER
        return await self._look_up(key_id, None)

    async def require(self, request: web.Request, scope: Scope) -> Caller:
        """Return the caller if it has the scope; raise the problem 401 or 403 otherwise."""
        caller = await self.caller(request)
        if caller is None:
            raise Problem(
                Code.UNAUTHENTICATED,
                _why_unknown(request),
                headers={hdrs.WWW_AUTHENTICATE: "Bearer"},
            )
        require_scope(caller, scope)
        return caller

    async def _look_up(self, key_id: str, digest: bytes | None) -> Caller | None:
        now, place = self._now(), (key_id, digest)
        remembered = self._remembered.get(place)
        if remembered is None or now >= remembered[0]:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            # callers that come together share one query
            remembered = (
                now + self._remembered_seconds,
                asyncio.create_task(self._find(key_id, digest), name="key-lookup"),
            )
            self._remembered[place] = remembered
        try:
            return await asyncio.shield(remembered[1])
        except Exception:
            self._remembered.pop(place, None)
            raise

    async def _find(self, key_id: str, digest: bytes | None) -> Caller | None:
        if self._kept is None:
            return await self._find_stored(key_id, digest)
        if self._kept.is_away() and (key := self._kept.find(key_id, digest)) is not None:
            return _caller(key)
        try:
            return await self._find_stored(key_id, digest)
        except psycopg.Error:
            if (key := self._kept.find(key_id, digest)) is None:
                raise
            return _caller(key)

    async def _find_stored(self, key_id: str, digest: bytes | None) -> Caller | None:
        async with self._pool.connection() as connection:
            row = await (
                await connection.execute(
                    SQL["find"], {"key_id": key_id, "noted_seconds": NOTED_SECONDS}
                )
            ).fetchone()
            if row is None or (digest is not None and not hmac.compare_digest(row[1], digest)):
                return None
            if row[4]:
                # a database that only reads, or is full, still opens what the key opens
                with suppress(psycopg.Error):
                    await connection.execute(SQL["note_use"], {"key_id": key_id})
        return key_holder(
            key_id,
            name=row[0],
            owner=row[3],
            scopes=frozenset(scope for scope in Scope if scope in row[2]),
        )


def _caller(key: KeptKey) -> Caller:
    scopes = frozenset(scope for scope in Scope if scope in key.scopes)
    return key_holder(key.key_id, name=key.name, owner=key.owner, scopes=scopes)


def _why_unknown(request: web.Request) -> str:
    given = request.headers.get(hdrs.AUTHORIZATION, "")
    scheme, _, key = given.partition(" ")
    if not given:
        return (
            "no key was sent: the header is `Authorization: Bearer <key>`; `statesvc keys create`"
            " makes a key"
        )
    if scheme.lower() != "bearer" or not key.strip():
        return (
            "the header `Authorization` should be the word `Bearer`, a blank, and the key;"
            " `statesvc keys create` makes a key"
        )
    return (
        "this key is not known here, or it was revoked or has expired; `statesvc keys list` shows"
        " those that there are"
    )


def require_scope(caller: Caller, scope: Scope) -> None:
    if not caller.has(scope):
        raise Problem(
            Code.MISSING_SCOPE,
            f"this call takes a key with scope `{scope.value}`; key {caller.key_id} lacks it",
            headers={
                hdrs.WWW_AUTHENTICATE: f'Bearer error="insufficient_scope", scope="{scope.value}"'
            },
            members={"required_scope": scope.value},
        )


def caller_of(request: web.Request) -> Caller:
    """Return the caller of an operation that declares a scope."""
    return request[CALLER]
