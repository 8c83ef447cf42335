"""NATS JetStream: `nats://[user:password@|token@]host[:4222]/subject[?stream=NAME]`.

`nats+tls://` where it must be encrypted. The message is stored when the stream's PubAck came. It
carries the webhook-id as `Nats-Msg-Id`, by which the stream itself drops repeated messages within
its duplicate window. Attributes are headers `ce-...` (CloudEvents' binding for NATS, binary mode).
"""

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import ParseResult, quote

import nats.errors
import nats.js.errors
import orjson
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from statesvc.addons.brokers.kit import (
    CONTENT_TYPE,
    BrokerUrl,
    CloudEvent,
    ConnectionLostError,
    Dialler,
    PublishRefusedError,
)
from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError

MESSAGE_ID: Final = "Nats-Msg-Id"
EXPECTED_STREAM: Final = "Nats-Expected-Stream"
_CONNECT_SECONDS: Final = 5
_PING_SECONDS: Final = 20
_PINGS_MAX: Final = 2
# JetStream's own number for an expected stream that the subject does not belong to.
_WRONG_STREAM: Final = 10060
# No wildcards, and no `$` or `_INBOX` prefix: those address the server itself.
_SUBJECT: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_STREAM: Final = re.compile(r"[A-Za-z0-9_-]+")
# Characters that the binding does not percent-encode in a header, besides letters and digits.
_LEFT_AS_IT_IS: Final = "!#$&'()*+,/:;=?@[]~"


def check(url: BrokerUrl, login: Login | None) -> None:
    del login
    (subject,) = url.segments("subject")
    url.check_options({"stream"})
    if not _SUBJECT.fullmatch(subject) or subject.startswith("_INBOX"):
        raise UrlFlawError(
            "must name a subject after the host: words of letters and digits, - and _, joined by"
            " dots"
        )
    if "stream" in url.options and not _STREAM.fullmatch(url.options["stream"]):
        raise UrlFlawError("names no stream: letters and digits, - and _")


async def connect(url: BrokerUrl, login: Login | None, dialler: Dialler) -> "JetStream":
    """Open a connection for a subject. It does not reconnect by itself."""
    reader, writer = await dialler.open(url.host, url.port, tls=url.tls, encrypt_later=True)
    connection = JetStream(url)
    try:
        await connection.open(_GivenTransport(reader, writer, must_encrypt=url.tls), login, dialler)
    except BaseException:
        writer.close()
        raise
    return connection


def headers_of(event: CloudEvent) -> dict[str, str]:
    mapped = event.headers("ce-")
    return {name: quote(value, safe=_LEFT_AS_IT_IS) for name, value in mapped.items()} | {
        "ce-datacontenttype": CONTENT_TYPE,
        MESSAGE_ID: event.id,
    }


class JetStream:
    def __init__(self, url: BrokerUrl) -> None:
        self._url = url
        (self._subject,) = url.path
        self._client = Client()
        self._transport: _GivenTransport | None = None
        self._waiting: set[asyncio.Timeout] = set()
        self._denied: str | None = None

    async def open(
        self, transport: "_GivenTransport", login: Login | None, dialler: Dialler
    ) -> None:
        """Log in. Raises PublishRefusedError."""
        self._transport = transport
        # the client offers no way to be given a connection
        self._client._transport = transport  # noqa: SLF001
        try:
            await self._client.connect(
                servers=f"nats://{self._url.netloc}",
                name="statesvc",
                # a reconnect of its own would dial without our check of the address, and repeat
                # publishes after their lease
                allow_reconnect=False,
                connect_timeout=_CONNECT_SECONDS,
                ping_interval=_PING_SECONDS,
                max_outstanding_pings=_PINGS_MAX,
                error_cb=self._heard_error,
                closed_cb=self._lost,
                tls=dialler.tls_context if self._url.tls else None,
                tls_hostname=self._url.host,
                **_credentials(login),
            )
        except nats.errors.Error as error:
            if "authorization" in str(error).lower():
                raise PublishRefusedError(
                    AttemptOutcome.DENIED, "the server refuses this login"
                ) from error
            raise ConnectionLostError from error

    @property
    def is_open(self) -> bool:
        return self._client.is_connected

    async def publish(self, event: CloudEvent) -> str:
        """Publish, and wait for the stream's acknowledgement."""
        headers = headers_of(event)
        if "stream" in self._url.options:
            headers[EXPECTED_STREAM] = self._url.options["stream"]
        # the client leaves requests unanswered when its connection ends
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._waiting.add(scope)
                answer = await self._client.request(
                    self._subject, event.data, timeout=_UNBOUNDED, headers=headers
                )
        except nats.errors.NoRespondersError:
            raise PublishRefusedError(
                AttemptOutcome.UNROUTABLE,
                "no stream takes this subject, or JetStream is not enabled",
            ) from None
        except nats.errors.MaxPayloadError:
            raise PublishRefusedError(
                AttemptOutcome.REFUSED, "the server takes no message of this size (max_payload)"
            ) from None
        except nats.errors.Error as error:
            raise ConnectionLostError from error
        except TimeoutError:
            if self._denied is not None:
                raise PublishRefusedError(AttemptOutcome.DENIED, self._denied) from None
            raise ConnectionLostError from None
        finally:
            self._waiting.discard(scope)
        return _acknowledged(answer.data)

    async def close(self) -> None:
        """Close the connection, also where the other side does not answer any more."""
        try:
            await self._client.close()
        finally:
            if self._transport is not None:
                self._transport.abort()

    async def _lost(self) -> None:
        self._wake_all()

    async def _heard_error(self, error: Exception) -> None:
        """Note errors outside of answers; all messages here go to one subject."""
        if "permissions violation" in str(error).lower():
            self._denied = "this login may not publish to the subject, or not receive on its inbox"
            self._wake_all()

    def _wake_all(self) -> None:
        now = asyncio.get_running_loop().time()
        for scope in self._waiting:
            scope.reschedule(now)


# The caller bounds it.
_UNBOUNDED: Final = 3600.0


def _credentials(login: Login | None) -> Mapping[str, Any]:
    if login is None:
        return {}
    return (
        {"token": login.user}
        if login.password is None
        else {"user": login.user, "password": login.password}
    )


def _acknowledged(data: bytes) -> str:
    """Return the message's place from a PubAck."""
    try:
        answer = orjson.loads(data)
        error = answer.get("error")
        if error is None:
            return orjson.dumps(
                {
                    "stream": answer["stream"],
                    "sequence": answer["seq"],
                    "duplicate": answer.get("duplicate", False),
                }
            ).decode()
        code, number, description = (
            int(error["code"]),
            error.get("err_code"),
            str(error.get("description", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise PublishRefusedError(
            AttemptOutcome.REFUSED, "something answered that is not JetStream"
        ) from None
    if number == _WRONG_STREAM:
        raise PublishRefusedError(
            AttemptOutcome.UNROUTABLE,
            "the subject belongs to another stream than the one named in the URL",
        )
    raise PublishRefusedError(
        AttemptOutcome.NOT_STORED if code >= 500 else AttemptOutcome.REFUSED, description
    )


class _GivenTransport(TcpTransport):
    """Over an existing connection. `must_encrypt`: no byte is written before the server agrees."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, *, must_encrypt: bool) -> None:
        # in place of the parent's, which sets just these, to None
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer
        self._must_encrypt = must_encrypt

    def abort(self) -> None:
        assert self._io_writer is not None  # noqa: S101 - it was given
        self._io_writer.transport.abort()

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Return at once: it is connected."""

    async def connect_tls(
        self,
        uri: str | ParseResult,
        ssl_context: Any,  # noqa: ANN401
        buffer_size: int,
        connect_timeout: int,
    ) -> None:
        await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)
        self._must_encrypt = False

    def write(self, payload: bytes) -> None:
        """Write. `ConnectionLostError` where it would go out in the clear and must not."""
        if self._must_encrypt:
            raise ConnectionLostError("the server does not encrypt")
        assert self._io_writer is not None  # noqa: S101 - it was given
        self._io_writer.write(payload)
