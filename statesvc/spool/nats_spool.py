"""A spool in NATS JetStream: `nats://[user:password@]host[,host]/STREAM[?replicas=3]`, `tls://`
alike.

The digest is the message's id in the stream, which drops repeated ones for as long as a message may
wait. A sync at each write is the servers' setting (`sync_interval: always`).
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig, StreamInfo

from statesvc.background.waiting import cancel_fully
from statesvc.spool.spool import (
    PORTION_BYTES,
    PORTION_MESSAGES,
    Depth,
    KeptPlaces,
    Portion,
    SpoolBounds,
    SpooledMessage,
    SpoolRefusedError,
    SpoolSource,
    decode,
    encode,
)

_STREAM: Final = re.compile(r"[A-Za-z0-9_-]+")
_PUBLISH_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.1
_ANSWER_SECONDS: Final = 5.0
# JetStream's numbers: no resources, no storage, message too large, store full.
_FULL: Final = frozenset({10023, 10047, 10054, 10077})

# From the loss of all connections until pushes are refused at once.
_RECONNECT_SECONDS: Final = 3.0
_log = structlog.get_logger()


def _parsed(url: str) -> tuple[list[str], str, int]:
    """Return servers, stream and replicas of a URL. Raises ValueError for another URL."""
    parts = urlsplit(url)
    stream = parts.path.strip("/")
    if not _STREAM.fullmatch(stream):
        raise ValueError("STATESVC_SPOOL_URL names no stream: nats://host/STREAM")
    user, at, hosts = parts.netloc.rpartition("@")
    servers = [f"{parts.scheme}://{user}{at}{host}" for host in hosts.split(",")]
    return servers, stream, int(parse_qs(parts.query).get("replicas", ["3"])[0])


async def look(url: str) -> StreamInfo | None:
    """Return the stream; None: there is none yet. Raises OSError where no server answers."""
    (servers, stream, _), client = _parsed(url), Client()
    try:
        # it asks a server that refuses for two minutes otherwise
        async with asyncio.timeout(_ANSWER_SECONDS):
            await client.connect(
                servers, error_cb=_ignore, connect_timeout=2, allow_reconnect=False
            )
        info: StreamInfo = await client.jetstream(timeout=2).stream_info(stream)
    except nats.js.errors.NotFoundError:
        return None
    except (nats.errors.Error, OSError, TimeoutError) as error:
        why = str(error) or "none in time"
        raise OSError(f"no server of {stream} answers: {why}") from error
    else:
        return info
    finally:
        await _close(client)


async def _close(client: Client) -> None:
    # it asserts that it was connected once
    with contextlib.suppress(nats.errors.Error, OSError, AssertionError):
        await client.close()


def flaw(config: StreamConfig) -> str | None:
    """Return why messages could get lost in a stream that somebody else made."""
    if config.discard != DiscardPolicy.NEW or config.max_age:
        return f"the stream {config.name} drops messages by age, or old ones for new ones"
    if config.storage != StorageType.FILE or config.retention != RetentionPolicy.LIMITS:
        return f"the stream {config.name} is not kept in files until it is purged"
    return None


class NatsSpool:
    """It connects, and makes the stream where there is none, in the background.

    The stream is its only source. `name`: of this stream, not of a later one that is called alike.
    """

    has_ended = False
    name = ""

    def __init__(self, url: str, bounds: SpoolBounds) -> None:
        """Begin to connect. Raises ValueError for a URL that it does not understand."""
        self._servers, self._name, self._replicas = _parsed(url)
        self.bounds = bounds
        self._kept_subject = f"{self._name}.kept"
        self._refused_subject = f"{self._name}.refused"
        self._client = Client()
        self._stream: Any = self._client.jetstream(timeout=_PUBLISH_SECONDS)
        self._kept = KeptPlaces(bounds.keep_seconds)
        self._why: str | None = "it is not connected yet"
        self._depth = Depth()
        self._pending_bytes = 0
        self._lost_at: float | None = None
        self._opening = asyncio.create_task(self._open(), name="spool-open")

    async def keep(self, message: SpooledMessage) -> UUID:
        payload = encode([message])
        if (refusal := self.refusal(len(payload))) is not None:
            raise SpoolRefusedError(refusal)
        self._pending_bytes += len(payload)
        try:
            return await self._publish(message, payload)
        finally:
            self._pending_bytes -= len(payload)

    def refusal(self, size: int = 0) -> str | None:
        if self._why is not None:
            return self._why
        # for a moment the client holds pushes back, and tries the other servers of the cluster
        if self._lost_at is not None and time.monotonic() - self._lost_at >= _RECONNECT_SECONDS:
            return "no server of it answers"
        if size > self._client.max_payload:
            return f"its servers take {self._client.max_payload:,} bytes at most (max_payload)"
        return self.bounds.refusal(self._depth, pending_bytes=self._pending_bytes, size=size)

    def waiting(self) -> Depth:
        return self._depth

    async def sources(self) -> Sequence[SpoolSource]:
        return [self] if self.name and self._client.is_connected else []

    def end(self) -> None:
        """Change nothing: others add to it."""

    async def forget(self, source: SpoolSource) -> None:
        """Keep it: it has not ended."""

    async def close(self) -> None:
        await cancel_fully(self._opening)
        await _close(self._client)

    async def read(self, place: int) -> Portion | None:
        messages: list[SpooledMessage] = []
        size, end = 0, place
        while len(messages) < PORTION_MESSAGES and size < PORTION_BYTES:
            found = await self._following(end)
            if found is None:
                break
            messages += decode(found.data)
            size += len(found.data)
            end = found.seq
        return Portion(messages, end) if messages else None

    async def settle(self, place: int) -> None:
        if (dropped := self._kept.settled(place)) is not None:
            purged = self._stream.purge_stream(
                self._name, seq=dropped + 1, subject=self._kept_subject
            )
            await self._answered(purged)

    async def set_aside(self, message: SpooledMessage) -> None:
        await self._answered(self._stream.publish(self._refused_subject, encode([message])))

    async def depth(self, place: int) -> Depth:
        info = await self._answered(
            self._stream.stream_info(self._name, subjects_filter=self._refused_subject)
        )
        oldest = await self._following(place)
        self._depth = Depth(
            messages=0 if oldest is None else info.state.last_seq + 1 - oldest.seq,
            bytes=info.state.bytes,
            oldest_id=None if oldest is None else decode(oldest.data)[0].message.message_id,
            set_aside=sum((info.state.subjects or {}).values()),
        )
        return self._depth

    async def _publish(self, message: SpooledMessage, payload: bytes) -> UUID:
        message_id, known_as = message.message.message_id, message.message.digest.hex()
        while True:
            headers = {"Nats-Msg-Id": known_as}
            try:
                stored = await self._stream.publish(
                    self._kept_subject, payload, timeout=_PUBLISH_SECONDS, headers=headers
                )
                if not stored.duplicate:
                    # for the time in which nobody drains and asks the stream
                    self._depth = self._depth.with_more([message], len(payload))
                    return message_id
                first = await self._stream.get_msg(self._name, seq=stored.seq)
                return decode(first.data)[0].message.message_id
            except nats.js.errors.NotFoundError:
                # the first one is drained: it is known by its digest, and this one's id leads there
                known_as = f"{message.message.digest.hex()}-{message_id}"
            except nats.js.errors.APIError as error:
                if error.err_code in _FULL:
                    raise SpoolRefusedError(error.description or "it is full") from error
                await asyncio.sleep(_RETRY_SECONDS)
            except (nats.errors.Error, TimeoutError) as error:
                if (refusal := self.refusal()) is not None:
                    raise SpoolRefusedError(refusal) from error
                await asyncio.sleep(_RETRY_SECONDS)

    async def _following(self, place: int) -> Any:  # noqa: ANN401 - of the client
        """Return the first message of the stream behind the place; None: there is none."""
        try:
            return await self._answered(
                self._stream.get_msg(
                    self._name, seq=place + 1, subject=self._kept_subject, next=True
                )
            )
        except nats.js.errors.NotFoundError:
            return None

    async def _disconnected(self) -> None:
        self._lost_at = time.monotonic()

    async def _reconnected(self) -> None:
        self._lost_at = None

    async def _open(self) -> None:
        while True:
            try:
                if not self._client.is_connected:
                    await self._client.connect(
                        self._servers,
                        name="statesvc spool",
                        error_cb=_ignore,
                        disconnected_cb=self._disconnected,
                        reconnected_cb=self._reconnected,
                        connect_timeout=2,
                        reconnect_time_wait=0.2,  # type: ignore[arg-type]
                        max_reconnect_attempts=-1,
                        ping_interval=5,
                    )
                info = await self._opened_stream()
            except (nats.errors.Error, OSError, TimeoutError) as error:
                why = f"the stream {self._name} is not there: {error}"
                if why != self._why:
                    _log.warning("spool_away", why=str(error))
                self._why = why
                await asyncio.sleep(1)
            else:
                self._why = flaw(info.config)
                if self._why is not None:
                    _log.error("spool_unsafe", why=self._why)
                self.name = f"nats:{info.config.name}:{info.created}"
                return

    async def _opened_stream(self) -> StreamInfo:
        try:
            info: StreamInfo = await self._stream.stream_info(self._name)
        except nats.js.errors.NotFoundError:
            info = await self._stream.add_stream(
                StreamConfig(
                    name=self._name,
                    subjects=[self._kept_subject, self._refused_subject],
                    storage=StorageType.FILE,
                    retention=RetentionPolicy.LIMITS,
                    discard=DiscardPolicy.NEW,
                    num_replicas=self._replicas,
                    max_bytes=self.bounds.bytes_max,
                    duplicate_window=self.bounds.age_seconds_max,
                )
            )
        return info

    async def _answered(self, call: Any) -> Any:  # noqa: ANN401 - of the client
        """Return the answer of a call. Raises OSError where no server gives it."""
        try:
            return await call
        except nats.js.errors.NotFoundError:
            raise
        except (nats.errors.Error, TimeoutError) as error:
            raise OSError(str(error)) from error


async def _ignore(_error: Exception) -> None:
    """Leave it to the calls, which fail."""
