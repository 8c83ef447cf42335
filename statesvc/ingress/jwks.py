"""The public keys of a carrier as a JSON Web Key Set, fetched on demand, and cached.

A push waits for at most one fetch; unknown keys cause at most one fetch a minute, so strangers
cannot make us fetch. While the carrier's server is away, cached keys stay valid for a day. The
fetch follows no redirect, reads a bounded answer and connects to no address of a private network,
like the notifier (`statesvc.delivery.addresses`).
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
import structlog
from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import RSAAlgorithm
from jwt.exceptions import InvalidKeyError

from statesvc.delivery.addresses import Network, Sockets

# Below the 3 s at which the tightest carrier gives up.
FETCH_SECONDS: Final = 2.0
BYTES_MAX: Final = 64 * 1024
KEYS_MAX: Final = 64
BITS_MIN: Final = 2048
FRESH_SECONDS: Final = 3600.0
CACHED_SECONDS: Final = 24 * 3600.0
AGAIN_SECONDS: Final = 60.0

_log = structlog.get_logger()
Keys = Mapping[str, RSAPublicKey]


class KeysUnavailableError(Exception):
    """The carrier's key server does not answer, and we have no keys of it."""


class KeySet:
    def __init__(
        self,
        url: str,
        *,
        allowed: Sequence[Network] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._allowed = tuple(allowed)
        self._clock = clock
        self._keys: Keys = {}
        self._fetched_at = self._asked_at = -CACHED_SECONDS
        self._fetching = asyncio.Lock()

    async def key(self, key_id: str) -> RSAPublicKey | None:
        """Return the key of this id; None where the carrier publishes none. Raises
        KeysUnavailableError.
        """
        if self._wants_fetch(key_id):
            async with self._fetching:
                if self._wants_fetch(key_id):
                    await self._refresh()
        if self._clock() - self._fetched_at >= CACHED_SECONDS:
            raise KeysUnavailableError
        return self._keys.get(key_id)

    def _wants_fetch(self, key_id: str) -> bool:
        now = self._clock()
        return now - self._asked_at >= AGAIN_SECONDS and (
            key_id not in self._keys or now - self._fetched_at >= FRESH_SECONDS
        )

    async def _refresh(self) -> None:
        self._asked_at = self._clock()
        try:
            document = await self._fetch()
            self._keys, self._fetched_at = parse_keys(document), self._asked_at
        except (TimeoutError, ClientError, OSError, ValueError) as error:
            _log.warning("jwks_unavailable", error_type=type(error).__name__)

    async def _fetch(self) -> bytes:
        connector = TCPConnector(socket_factory=Sockets(self._allowed).open)
        timeout = ClientTimeout(total=FETCH_SECONDS)
        async with (
            ClientSession(
                connector=connector, cookie_jar=DummyCookieJar(), timeout=timeout, trust_env=False
            ) as session,
            session.get(
                self._url, allow_redirects=False, headers={"Accept": "application/json"}
            ) as response,
        ):
            if response.status != HTTPStatus.OK:
                raise ValueError(f"status {response.status}")
            document = bytearray()
            async for part in response.content.iter_chunked(BYTES_MAX):
                document += part
                if len(document) > BYTES_MAX:
                    raise ValueError(f"more than {BYTES_MAX} bytes")
            return bytes(document)


def parse_keys(document: bytes) -> Keys:
    """Parse the RSA keys for signatures of a key set; others are left out. Raises ValueError where
    it is no key set.
    """
    value = orjson.loads(document)
    if type(value) is not dict or type(value.get("keys")) is not list:
        raise ValueError("no `keys`")
    found = {}
    for member in value["keys"][:KEYS_MAX]:
        if (
            isinstance(member, dict)
            and isinstance(key_id := member.get("kid"), str)
            and (key := _rsa_key(member)) is not None
        ):
            found[key_id] = key
    return found


def _rsa_key(member: Mapping[str, Any]) -> RSAPublicKey | None:
    if (
        member.get("kty") != "RSA"
        or member.get("use", "sig") != "sig"
        or member.get("alg", "RS256") != "RS256"
    ):
        return None
    try:
        key = RSAAlgorithm.from_jwk(dict(member))
    except (InvalidKeyError, ValueError, TypeError, AttributeError):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= BITS_MIN else None
