"""Ids of messages: UUIDv7 (RFC 9562), made in the process, so that the id is known before the row is written.

Ordered by the millisecond of their making; 74 random bits keep processes apart. Nothing but index locality leans on the order.
"""

import secrets
import time
from uuid import UUID

_RANDOM_BYTES = 10


def message_id(unix_ms: int, random: bytes) -> UUID:
    """The id of a time (milliseconds since 1970) and ten random bytes."""
    chance = int.from_bytes(random)
    value = (unix_ms & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | (chance >> 64 & 0x0FFF) << 64 | 0b10 << 62 | chance & 0x3FFF_FFFF_FFFF_FFFF
    return UUID(int=value)


def new_message_id() -> UUID:
    """A fresh id."""
    return message_id(time.time_ns() // 1_000_000, secrets.token_bytes(_RANDOM_BYTES))
