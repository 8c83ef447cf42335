"""Headers that a subscriber asks for with each notification: which names it may use. Pure.

A webhook of HTTP alone carries them. They may hold credentials, so they are stored sealed
and shown by name only.
"""

import re
from collections.abc import Mapping
from typing import Final

NAME_PATTERN: Final = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
# Printable ASCII without blanks at its ends, which every server reads unchanged.
VALUE_PATTERN: Final = r"^[!-~]([ -~]*[!-~])?$"
NAME_CHARS_MAX: Final = 64
VALUE_CHARS_MAX: Final = 2_000
HEADERS_MAX: Final = 20
CHARS_MAX: Final = 4_096

# Headers that HTTP, tracing and this service set themselves.
_TAKEN: Final = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "traceparent",
        "tracestate",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    )
)
_TAKEN_BEGINNINGS: Final = ("proxy-", "sec-", "webhook-")


def checked_name(name: str) -> str:
    """Return a name that is free to use. Raises ValueError."""
    lowered = name.lower()
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError("is no name of a header")
    if lowered in _TAKEN or lowered.startswith(_TAKEN_BEGINNINGS):
        raise ValueError(f"the header {name} is set by HTTP or by the signature: take another name")
    return name


def check_headers(headers: Mapping[str, str]) -> None:
    """Check the headers of a subscription. Raises ValueError, which repeats no value."""
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a name stands there twice; case does not matter")
    for name in headers:
        checked_name(name)
    if sum(len(name) + len(value) for name, value in headers.items()) > CHARS_MAX:
        raise ValueError(f"headers must have at most {CHARS_MAX:,} characters together")


def merged(own: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request: ours stand, whatever the subscriber's are called."""
    taken = {name.lower() for name in ours}
    return {name: value for name, value in own.items() if name.lower() not in taken} | dict(ours)
