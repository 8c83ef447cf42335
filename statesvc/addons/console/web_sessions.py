"""Sessions of the console: a random token in the browser stands for an API key.

The key is entered once. The table has SHA-256 of the token and of the key, so that neither can be
read from it. A session ends after twelve hours, when it is ended, and when its key is revoked or
changes.

While the database takes no writes, the token of a new session is signed instead and not stored: it
names the key, only reads, and ends within the hour.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import psycopg
from aiohttp import web

from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.http.keys.api_keys import Caller, Keys
from statesvc.http.keys.key_store import Scope, key_hash
from statesvc.http.keys.signed_token import TokenRefusedError, TokenSigner
from statesvc.http.problem import Code, Problem

SESSION_SECONDS: Final = 12 * 3600.0
SIGNED_SECONDS: Final = 3600.0
SESSIONS_PER_KEY_MAX: Final = 20
_PURPOSE: Final = "console"
_SQL: Final = queries("statesvc.addons.console", "web_sessions")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True)
class WebSession:
    """The user of a session, and whether it may make changes: no more than its key may.

    `ends_at`: of a visit by a link.
    """

    token: str
    caller: Caller
    may_change: bool
    ends_at: datetime | None = None

    def may(self, scope: Scope | None) -> bool:
        return scope is None or self.caller.has(scope)


class Cookie:
    """The cookie that has a token. Except on a loopback address it travels by HTTPS alone.

    `same_site` Lax: it is sent when a link of another site is opened, but not with its forms.
    """

    def __init__(
        self,
        request: web.Request,
        *,
        name: str = "statesvc",
        same_site: Literal["Strict", "Lax"] = "Strict",
        seconds: float = SESSION_SECONDS,
    ) -> None:
        host = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
        self._is_secure = (host or request.host) not in _LOOPBACK
        self._name = f"__Host-{name}" if self._is_secure else name
        self._same_site, self._seconds = same_site, seconds
        self.token = request.cookies.get(self._name, "")

    def set(self, response: web.StreamResponse, token: str) -> None:
        response.set_cookie(
            self._name,
            token,
            max_age=int(self._seconds),
            path="/",
            httponly=True,
            secure=self._is_secure,
            samesite=self._same_site,
        )

    def clear(self, response: web.StreamResponse) -> None:
        response.del_cookie(
            self._name, path="/", httponly=True, secure=self._is_secure, samesite=self._same_site
        )


def fresh_token() -> str:
    """Generate 256 random bits."""
    return secrets.token_urlsafe(32)


def form_token(token: str) -> str:
    """Return the token that a form must send: only a page made for this session can know it."""
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest()


def is_form_token(token: str, sent: str) -> bool:
    """Return whether a form was made for this token, in constant time."""
    return bool(token) and hmac.compare_digest(
        form_token(token).encode(), sent.encode("utf-8", "replace")
    )


class WebSessions:
    def __init__(self, pool: Connections, keys: Keys, signer: TokenSigner) -> None:
        self._pool = pool
        self._keys = keys
        self._signer = signer

    async def begin(self, key: str, *, may_change: bool) -> str | None:
        """Begin a session and return its token; None where the key is not good."""
        digest = key_hash(key)
        caller = await self._keys.holder(key)
        if caller is None:
            return None
        token = fresh_token()
        try:
            async with self._pool.connection() as connection, connection.transaction():
                await connection.execute(
                    _SQL["begin"],
                    {
                        "token_hash": _hash(token),
                        "key_id": caller.key_id,
                        "key_hash": digest,
                        "may_change": may_change,
                        "seconds": SESSION_SECONDS,
                    },
                )
                await connection.execute(
                    _SQL["forget"], {"key_id": caller.key_id, "sessions_max": SESSIONS_PER_KEY_MAX}
                )
        except psycopg.errors.ReadOnlySqlTransaction:
            expires_at = datetime.now(UTC) + timedelta(seconds=SIGNED_SECONDS)
            return self._signer.sign(_PURPOSE, {"key_id": caller.key_id}, expires_at=expires_at)
        return token

    async def of(self, request: web.Request) -> WebSession | None:
        """Return the live session of a request, if any."""
        token = Cookie(request).token
        if not token:
            return None
        if _is_signed(token):
            return await self._find_signed(token)
        async with self._pool.connection() as connection:
            row = await (
                await connection.execute(_SQL["find"], {"token_hash": _hash(token)})
            ).fetchone()
        if row is None:
            return None
        key_id, digest, may_change = row
        caller = await self._keys.holder_of(key_id, digest)
        return None if caller is None else WebSession(token, caller, may_change)

    async def _find_signed(self, token: str) -> WebSession | None:
        try:
            caller = await self._keys.by_id(str(self._signer.read(_PURPOSE, token)["key_id"]))
        except TokenRefusedError:
            return None
        return None if caller is None else WebSession(token, caller, may_change=False)

    async def set_may_change(self, token: str, *, may_change: bool) -> None:
        """Allow or end changes. Raises Problem."""
        if _is_signed(token):
            raise Problem(
                Code.CONFLICT,
                "this session began while the database took no writes, and only reads: log out, and"
                " in again",
            )
        async with self._pool.connection() as connection:
            await connection.execute(
                _SQL["set_may_change"], {"token_hash": _hash(token), "may_change": may_change}
            )

    async def end(self, token: str) -> None:
        if _is_signed(token):
            return
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["end"], {"token_hash": _hash(token)})


def _is_signed(token: str) -> bool:
    return "." in token


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
