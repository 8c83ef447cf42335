"""Properties of AMQP messages, in bytes and back, without a change. Pure.

The client re-encodes integers by their size, in types that Celery's own client does not read, and
adds a message id where there is none. Here the bytes are those that Celery's client writes, and a
message is published as it was recorded.
"""

import struct
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

from pamqp import encode
from pamqp.commands import Basic
from pamqp.header import ContentHeader

# Headers that RabbitMQ adds. A message published with them may be dropped: they mark it as having
# gone in a circle.
BROKERS_OWN: Final = frozenset(
    {
        "x-death",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-last-death-exchange",
        "x-last-death-queue",
        "x-last-death-reason",
        "x-delivery-count",
        "x-acquired-count",
    }
)

_SHORT_MAX: Final = 2**31


class _PyAmqpProperties(Basic.Properties):
    """Encodes its header table as py-amqp does."""

    # as the parent has it
    def encode_property(self, name: str, value: Any) -> bytes:  # noqa: ANN401
        return _table(value) if name == "headers" else super().encode_property(name, value)


class VerbatimProperties(Basic.Properties):
    """Go out as the bytes that they were made of."""

    def __init__(self, wire: bytes) -> None:
        # the client follows confirmations by it; it is not sent
        super().__init__(message_id=uuid4().hex)
        self._wire = wire

    def marshal(self) -> bytes:
        return self._wire


def wire_properties(properties: Basic.Properties) -> bytes:
    """Encode as on the wire, without the broker's additions."""
    given = {name: getattr(properties, name) for name in properties.__slots__}
    headers = given.get("headers")
    if headers:
        given["headers"] = {
            name: value for name, value in headers.items() if name not in BROKERS_OWN
        }
    return _PyAmqpProperties(**given).marshal()


def read_properties(wire: bytes) -> Basic.Properties:
    header = ContentHeader()
    # a header frame: class, weight and size of the body, then the properties
    header.unmarshal(struct.pack(">HHQ", Basic.frame_id, 0, 0) + wire)
    return header.properties


def _table(table: Mapping[str, Any]) -> bytes:
    fields = b"".join(encode.short_string(name) + _field(value) for name, value in table.items())
    return struct.pack(">I", len(fields)) + fields


def _field(value: Any) -> bytes:  # noqa: ANN401, PLR0911 - one line for each type of a table
    match value:
        case None:
            return b"V"
        case bool():
            return b"t" + bytes([value])
        case int():
            return (
                b"I" + struct.pack(">i", value)
                if -_SHORT_MAX <= value < _SHORT_MAX
                else b"l" + struct.pack(">q", value)
            )
        case float():
            return b"d" + struct.pack(">d", value)
        case str():
            return b"S" + encode.long_string(value)
        case bytes() | bytearray():
            return b"x" + struct.pack(">I", len(value)) + value
        case datetime():
            return b"T" + encode.timestamp(value)
        case Decimal():
            return b"D" + encode.decimal(value)
        case Mapping():
            return b"F" + _table(value)
        case _:
            items = b"".join(map(_field, value))
            return b"A" + struct.pack(">I", len(items)) + items
