"""Canonical JSON (RFC 8785) of the values that entries are made of.

orjson with sorted keys gives exactly the RFC's bytes for our values: strings without lone
surrogates, integers within 2^53, booleans, null, lists, and objects with ASCII keys. Floats are
refused, because their spelling is where the two differ. A property test compares with an
independent implementation.
"""

from collections.abc import Mapping
from typing import Any

import orjson


def canonical_bytes(value: Mapping[str, Any]) -> bytes:
    """Encode a value as the bytes that are stored and hashed.

    Raises `TypeError` for a value outside the domain (floats, bytes, datetimes).
    """
    return orjson.dumps(
        value,
        default=_refuse,
        option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_STRICT_INTEGER,
    )


def _refuse(value: object) -> object:
    raise TypeError(
        f"{type(value).__name__} has no place in a canonical entry: give it as text or integer"
    )
