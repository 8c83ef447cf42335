"""Witnesses of the log, as a setting names them."""

import re
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator, SkipValidation
from pydantic_settings import NoDecode

from events.merkle.checkpoint import VerifierKey
from statesvc.settings.carrier_settings import split

_ENTRY: Final = re.compile(r"(\S+)\s+(https?://\S+)")


class Witness(NamedTuple):
    """`url`: its submission prefix."""

    key: VerifierKey
    url: str


def read_witnesses(value: object) -> object:
    """Parse `verifier key URL`, comma-separated. Raises ValueError."""
    if not isinstance(value, str):
        return value
    witnesses = []
    for entry in split(value):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise ValueError("a witness reads `verifier key URL`; a comma divides two")
        witnesses.append(
            Witness(VerifierKey.parse(found[1], is_witness=True), found[2].rstrip("/"))
        )
    # it would count twice for the quorum
    for identity in ("name", "public_key"):
        if len({getattr(witness.key, identity) for witness in witnesses}) < len(witnesses):
            raise ValueError("a witness is named twice")
    return tuple(witnesses)


Witnesses = Annotated[
    tuple[Witness, ...], NoDecode, SkipValidation, BeforeValidator(read_witnesses)
]
