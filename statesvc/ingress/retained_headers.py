"""Which request headers are stored with a message: those that prove or identify the push, never a credential.

A list of what is allowed: a header that is not on it is left out. Credentials never pass, even when a carrier's entry
names the header as its signature.
"""

from collections.abc import Iterable
from typing import Final

import orjson
from multidict import CIMultiDictProxy

from events.carriers.carrier import Authentication, Hmac

_RETAINED: Final = (
    "content-type",
    "user-agent",
    "date",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-request-id",
    "x-correlation-id",
    "x-transaction-id",
    "x-event-id",
    "x-event-type",
    "x-event-name",
    "x-delivery-id",
    "x-webhook-id",
    "x-webhook-timestamp",
    "x-message-id",
    "x-timestamp",
    "x-topic",
    "shippo-auth-signature",
    "x-shipengine-rsa-sha256-key-id",
    "x-shipengine-rsa-sha256-signature",
    "x-shipengine-timestamp",
    "sign",
)
_NEVER: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "credential", "x-api-key"})


class RetainedHeaders:
    """The allow-list of one carrier: the general names and its signature headers."""

    def __init__(self, schemes: Iterable[Authentication]) -> None:
        signatures = [scheme.header.lower() for scheme in schemes if isinstance(scheme, Hmac)]
        self._names = tuple(name for name in dict.fromkeys([*_RETAINED, *signatures]) if name not in _NEVER)

    def document(self, headers: CIMultiDictProxy[str]) -> str:
        """The retained headers as the text of a JSON object, names in lower case."""
        retained = {name: headers[name] for name in self._names if name in headers}
        try:
            return orjson.dumps(retained).decode()
        except orjson.JSONEncodeError:
            # bytes that are no UTF-8: stored as Latin-1, the charset of old HTTP
            return orjson.dumps({name: _latin(value) for name, value in retained.items()}).decode()


def _latin(value: str) -> str:
    return value.encode("utf-8", "surrogateescape").decode("latin-1")
