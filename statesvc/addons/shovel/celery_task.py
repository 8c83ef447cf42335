"""Tasks as Celery writes them: protocol 2 (headers, and a body of arguments) and
protocol 1 (all in the body).

Pure.

A message that is neither is plain: its payload is a webhook's body, and it has no name. Times
without an offset are in UTC, as Celery takes them.
"""

import base64
import binascii
import bz2
import json
import lzma
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from statesvc.addons.shovel.delayed_delivery import due_time
from statesvc.addons.shovel.source_message import (
    NO_HEADERS,
    Envelope,
    MalformedEnvelopeError,
    Taken,
    open_envelope,
)

_PICKLED: Final = frozenset(
    {"application/x-python-serialize", "application/x-python", "application/data-pickle"}
)
_JSON: Final = frozenset({"application/json", "application/x-json", "text/json"})
_PLAIN_BYTES_MAX: Final = 64 * 1024 * 1024
_EMBED: Final = ("callbacks", "errbacks", "chain", "chord")


class UnreadableTaskError(ValueError):
    """The message cannot be read here, whatever the mapping. The text quotes none of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Request of a message. `name`: empty for a plain message. `id`: None without a producer's id.

    `follow_ups`: Celery's later steps (`callbacks`, `chain`, ...), which have no place in an
    inbox.
    """

    name: str
    id: str | None
    args: Sequence[Any] = field(default=(), repr=False)
    kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    headers: Mapping[str, Any] = field(default_factory=dict, repr=False)
    payload: bytes = field(repr=False)
    eta: datetime | None = None
    expires: datetime | None = None
    follow_ups: tuple[str, ...] = ()

    @property
    def identity(self) -> bytes:
        """Identity that makes it the same message when it is met again.

        Celery sends a task again for another time, or as another try, under the same id with the
        same arguments.
        """
        if self.id is None:
            return b"body\x1f" + self.payload
        kind, content = (
            (b"task", json.dumps([self.name, self.args, self.kwargs], sort_keys=True).encode())
            if self.name
            else (b"message", self.payload)
        )
        return b"\x1f".join((kind, self.id.encode("utf-8", "surrogatepass"), content))


def read_task(taken: Taken, *, now: datetime) -> Task:
    """Read a task. Raises UnreadableTaskError.

    `now`: start of a delay for which no ETA is recorded.
    """
    try:
        envelope = open_envelope(taken)
        task = _read(envelope)
    except MalformedEnvelopeError as error:
        raise UnreadableTaskError(str(error)) from None
    if task.eta is None and (due := due_time(taken.queue, taken.routing_key, now=now)) is not None:
        return Task(
            name=task.name,
            id=task.id,
            headers=task.headers,
            payload=task.payload,
            args=task.args,
            kwargs=task.kwargs,
            eta=due,
        )
    return task


def _read(envelope: Envelope) -> Task:
    headers = envelope.headers
    if envelope.content_type in _PICKLED:
        raise UnreadableTaskError(
            "its body is a Python pickle, which runs code when it is opened: let its producer send"
            " JSON (task_serializer = 'json'), and let the old workers finish what is pickled"
        )
    payload = _decompressed(envelope.payload, headers.get("compression"))
    if isinstance(headers.get("task"), str) and headers.get("id") is not None:
        return _protocol_2(headers, payload, envelope.content_type)
    if envelope.content_type in _JSON and (document := _document(payload)) is not None:
        return _protocol_1(document, payload)
    return Task(
        name="",
        id=envelope.message_id or None,
        headers=headers,
        payload=payload,
        eta=_time(headers.get("eta"), "eta"),
    )


def _protocol_2(headers: Mapping[str, Any], payload: bytes, content_type: str) -> Task:
    if content_type not in _JSON:
        raise UnreadableTaskError(f"its body is {content_type}; only JSON is read")
    body = _json(payload)
    match body:
        case [list() as args, dict() as kwargs, *rest]:
            embed = rest[0] if rest and isinstance(rest[0], dict) else NO_HEADERS
        case _:
            raise UnreadableTaskError("its body is not [args, kwargs, embed], as protocol 2 has it")
    return Task(
        name=headers["task"],
        id=str(headers["id"]),
        args=args,
        kwargs=kwargs,
        headers=headers,
        payload=payload,
        eta=_time(headers.get("eta"), "eta"),
        expires=_time(headers.get("expires"), "expires"),
        follow_ups=tuple(name for name in _EMBED if embed.get(name)),
    )


def _document(payload: bytes) -> Mapping[str, Any] | None:
    """Parse the body of a task in protocol 1; None: it is something else."""
    try:
        document = _json(payload)
    except UnreadableTaskError:
        return None
    is_task = (
        isinstance(document, dict)
        and isinstance(document.get("task"), str)
        and {"id", "args", "kwargs"} & document.keys()
    )
    return document if is_task else None


def _protocol_1(document: Mapping[str, Any], payload: bytes) -> Task:
    args, kwargs = document.get("args") or [], document.get("kwargs") or {}
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise UnreadableTaskError(
            "its `args` are no list, or its `kwargs` no object, as protocol 1 has them"
        )
    return Task(
        name=document["task"],
        id=None if document.get("id") is None else str(document["id"]),
        args=args,
        kwargs=kwargs,
        payload=payload,
        eta=_time(document.get("eta"), "eta"),
        expires=_time(document.get("expires"), "expires"),
        follow_ups=tuple(name for name in _EMBED if document.get(name)),
    )


def as_bytes(found: Any) -> bytes | None:  # noqa: ANN401, PLR0911 - any JSON, a line for each form
    """Convert a value of a task's arguments to a webhook's body: text and bytes as they are,
    objects and lists as JSON.

    None: it is neither.
    """
    match found:
        case str():
            return found.encode("utf-8", "surrogatepass")
        case {"__type__": "bytes", "__value__": str() as text, **rest} if not rest:
            return text.encode()
        case {"__type__": "base64", "__value__": str() as text, **rest} if not rest:
            return _base64(text)
        case {"__bytes__": True, "bytes": str() as text}:
            return text.encode()
        case {"__base64__": True, "bytes": str() as text}:
            return _base64(text)
        case dict() | list():
            return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
        case _:
            return None


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _json(payload: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        pass
    try:
        # what Python writes and JSON does not know: NaN, integers of any length, lone surrogates
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise UnreadableTaskError("its body is not the JSON that it says") from None


def _inflated(payload: bytes) -> bytes:
    inflater = zlib.decompressobj()
    found = inflater.decompress(payload, _PLAIN_BYTES_MAX)
    if not inflater.eof:
        raise ValueError
    return found


# By the value of kombu's header `compression`; its gzip is zlib's format.
_DECOMPRESSORS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "application/x-gzip": _inflated,
    "application/x-bz2": lambda payload: bz2.BZ2Decompressor().decompress(
        payload, _PLAIN_BYTES_MAX
    ),
    "application/x-lzma": lambda payload: lzma.LZMADecompressor().decompress(
        payload, _PLAIN_BYTES_MAX
    ),
}


def _decompressed(payload: bytes, compression: object) -> bytes:
    if compression is None:
        return payload
    decompress = _DECOMPRESSORS.get(str(compression))
    if decompress is None:
        raise UnreadableTaskError(
            "it is compressed in a way that is not read here; gzip, bzip2 and lzma are"
        )
    try:
        return decompress(payload)
    except (ValueError, OSError, zlib.error, lzma.LZMAError, EOFError):
        raise UnreadableTaskError("it does not decompress as it says") from None


def _time(given: object, name: str) -> datetime | None:
    """Parse ISO 8601, or seconds since 1970."""
    match given:
        case None | "":
            return None
        case str():
            try:
                found = datetime.fromisoformat(given)
            except ValueError:
                raise UnreadableTaskError(f"its {name} is no time in ISO 8601") from None
        case int() | float() if not isinstance(given, bool) and math.isfinite(given):
            try:
                found = datetime.fromtimestamp(given, UTC)
            except (ValueError, OverflowError, OSError):
                raise UnreadableTaskError(f"its {name} is out of range") from None
        case datetime():
            found = given
        case _:
            raise UnreadableTaskError(f"its {name} is no time")
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
