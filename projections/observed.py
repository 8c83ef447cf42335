"""Observations of a shipment, from its entries in the log: which expectation was
not met, for which cause.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.json import Decoder

# Kind and cause of each observation, sorted.
Observed = tuple[tuple[str, str], ...]


class _Details(Struct, frozen=True, gc=False):
    cause: str = ""


class _Observation(Struct, frozen=True, gc=False):
    entry: str
    kind: str = ""
    details: _Details = _Details()


_decode: Final = Decoder(_Observation).decode
_WORD: Final = b'"entry":"observation"'


def is_observation(canonical: bytes) -> bool:
    """Return whether an entry is an observation.

    A substring search is enough: canonical JSON has a single spelling and escapes quotation
    marks in texts.
    """
    return _WORD in canonical


def observed_from_log(canonicals: Iterable[bytes]) -> Observed:
    """Return the observations among these entries, which may be in any order."""
    found = (_decode(canonical) for canonical in canonicals if is_observation(canonical))
    return tuple(sorted({(one.kind, one.details.cause) for one in found}))
