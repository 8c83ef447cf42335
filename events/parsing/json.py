"""JSON bodies of strangers, parsed strictly.

Duplicate keys, NaN and Infinity, endless numbers and endless nesting are refused; integers keep all
their digits; text holds neither NUL nor lone surrogates. orjson does the work; only where its
semantics differ does the standard library read again.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import orjson

from events.errors import Cause, UnreadableMessageError
from events.parsing.text import scrub

DEPTH_MAX: Final = 254

DIGITS_MAX: Final = 64

_AS_ZERO: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
_BEFORE_A_NUMBER: Final = b":,[- \t\r\n"
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)
_OPENING: Final = ("{", "[")
_GZIP: Final = b"\x1f\x8b"
_FORM: Final = re.compile(rb"[A-Za-z_][\w.-]*=")
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def read_json(body: bytes) -> Any:  # noqa: ANN401 - the value of a JSON text has no closed type
    """Parse a JSON text in UTF-8, UTF-16 or UTF-32, with or without BOM.

    JSON wrapped as text is unwrapped. Raises UnreadableMessageError: `unreadable` or
    `too_complex`.
    """
    value = _read(body)
    # once: some gateways encode a JSON text as a JSON string
    if type(value) is str and value.lstrip()[:1] in _OPENING:
        return _read(value.encode())
    return value


def read_object(body: bytes, *, otherwise: str) -> dict[str, Any]:
    """Parse a JSON object; an empty list is an empty object, as some carriers print.

    Raises UnreadableMessageError as read_json does, and `unknown_format` with the text
    `otherwise` for another value.
    """
    value = read_json(body)
    if value == []:
        return {}
    if type(value) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, otherwise)
    return value


def json_values(body: bytes) -> Iterator[Any]:
    """Yield the value of the body, or those of its lines where it is no JSON as a whole."""
    try:
        found = [read_json(body) if has_long_number(body) else orjson.loads(body)]
    except (orjson.JSONDecodeError, UnreadableMessageError):
        try:
            found = [read_json(body)]
        except UnreadableMessageError:
            found = [*json_lines(body)]
    yield from found


def json_lines(body: bytes | str) -> Iterator[Any]:
    """Yield the value of the whole, or where that is no JSON, those of the lines that are."""
    for line in (body, *body.splitlines()):
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if line is body:
            return


def _read(body: bytes) -> Any:  # noqa: ANN401 - as read_json
    if not body.strip(b" \t\r\n"):
        raise UnreadableMessageError(Cause.UNREADABLE, "the body is empty")
    # not unpacked: the bound of a body counts its bytes as sent
    if body.startswith(_GZIP):
        raise UnreadableMessageError(
            Cause.UNREADABLE, "compressed by gzip, which Content-Encoding does not say"
        )
    if body.startswith(_BOMS) or b"\x00" in body[:4]:
        body = _as_utf8(body)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _read_slowly(body)
    try:
        printed = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise UnreadableMessageError(
            Cause.TOO_COMPLEX, f"nested deeper than {DEPTH_MAX} levels"
        ) from error
    # What is printed again byte for byte lost nothing; compact JSON is.
    if printed == body and b"\\u0000" not in body:
        return value
    # A key that stood twice is missing from what orjson prints again, so its quotes are. Only an
    # escaped quote could hide that.
    if (
        printed.count(b'"') != body.count(b'"')
        or b"\\u0022" in body
        or b"\\u0000" in body
        or has_long_number(body)
    ):
        return _read_slowly(body)
    return value


def _as_utf8(body: bytes) -> bytes:
    try:
        return body.decode(json.detect_encoding(body)).removeprefix("\ufeff").encode()
    except UnicodeError as error:
        raise UnreadableMessageError(Cause.UNREADABLE, "the text breaks its encoding") from error


def _refuse_depth(body: bytes) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(body):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > DEPTH_MAX:
                raise UnreadableMessageError(
                    Cause.TOO_COMPLEX, f"nested deeper than {DEPTH_MAX} levels"
                )
        elif token in (b"]", b"}"):
            depth -= 1


def has_long_number(body: bytes) -> bool:
    """Return whether the body has a bare number of 19 digits or more: below -2^63, and from 2^64
    on, orjson would read a float.
    """
    # every digit becomes 0, so that one search finds a run of any digits
    masked = body.translate(_AS_ZERO)
    at = masked.find(_LONG_NUMBER)
    while at >= 0:
        if at == 0 or masked[at - 1] in _BEFORE_A_NUMBER:
            return True
        end = at + len(_LONG_NUMBER)
        while masked[end : end + 1] == b"0":
            end += 1
        at = masked.find(_LONG_NUMBER, end)
    return False


def _read_slowly(body: bytes) -> Any:  # noqa: ANN401 - as read_json
    # before json.loads, which recurses: deep nesting would end the interpreter's stack
    _refuse_depth(body)
    try:
        decoded = body.decode()
    except UnicodeDecodeError as error:
        raise UnreadableMessageError(
            Cause.UNREADABLE, f"not UTF-8 at byte {error.start}"
        ) from error
    try:
        return _scrubbed(
            json.loads(
                decoded,
                object_pairs_hook=_unique_pairs,
                parse_int=_bounded_int,
                parse_float=_finite,
                parse_constant=_refuse_constant,
            )
        )
    except json.JSONDecodeError as error:
        form = ", but a form (name=value)" if _FORM.match(body) else ""
        raise UnreadableMessageError(
            Cause.UNREADABLE, f"not JSON at character {error.pos}{form}"
        ) from error
    except RecursionError as error:
        raise UnreadableMessageError(Cause.TOO_COMPLEX, "nested too deeply") from error


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {scrub(key): _scrubbed(value) for key, value in pairs}
    # orjson keeps the last: another parser on the way may have kept the first
    if len(found) != len(pairs):
        raise UnreadableMessageError(Cause.UNREADABLE, "a key stands twice in one object")
    return found


def _scrubbed(value: object) -> object:
    if type(value) is str:
        return scrub(value)
    if type(value) is list:
        return [_scrubbed(member) for member in value]
    return value


def _bounded_int(digits: str) -> int:
    # int of a long text takes quadratic time
    if len(digits) > DIGITS_MAX:
        raise UnreadableMessageError(
            Cause.TOO_COMPLEX, f"a number of more than {DIGITS_MAX} digits"
        )
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise UnreadableMessageError(Cause.UNREADABLE, "a number beyond the range of a double")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableMessageError(Cause.UNREADABLE, f"{name} is not JSON")
