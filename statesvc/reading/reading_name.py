"""Names of readings: a version of ours, or a foreign fleet's `name@version` (docs/strangle.md)."""

import re
from collections.abc import Iterator
from typing import Final, TypeGuard

from events.carriers.carrier import Carrier

READER: Final = re.compile(
    r"([a-z0-9][a-z0-9_.-]{0,63})@([A-Za-z0-9][A-Za-z0-9_.+-]{0,31})", re.ASCII
)
# Our own workers, beside the foreign readers.
OURS: Final = "statesvc"


def is_foreign(reading: str | None) -> TypeGuard[str]:
    """Return whether this names another fleet than ours."""
    return reading is not None and "@" in reading


def refused_names(
    stable: str | None, candidate: str | None, carrier: Carrier
) -> Iterator[tuple[str, str]]:
    """Yield why these two may not read a carrier: which member, and the reason."""
    if stable is not None and (why := _no_foreign_name(stable, carrier)):
        yield "stable", why
    if is_foreign(candidate):
        if why := _no_foreign_name(candidate, carrier):
            yield "candidate", why
        elif candidate == stable:
            yield (
                "candidate",
                "no candidate: it is the stable reading, which reads every message already",
            )
    elif candidate is not None and candidate not in carrier.normalizers:
        versions = ", ".join(carrier.normalizers)
        yield (
            "candidate",
            (
                f"no candidate version of this name: {carrier.carrier_id} has {versions}; another"
                " fleet's is called name@version"
            ),
        )
    elif candidate is not None and candidate == carrier.stable and stable is None:
        yield (
            "candidate",
            "no candidate version: it is the stable one, which reads every message already",
        )


def _no_foreign_name(reading: str, carrier: Carrier) -> str | None:
    named = READER.fullmatch(reading)
    if named is None:
        return (
            "another fleet's reading is called name@version, as its workers hand it over; ours is"
            " null (`--stable ours`)"
        )
    if named[1] == carrier.carrier_id and named[2] in carrier.normalizers:
        return (
            f"that is a version of ours: as candidate it is called {named[2]}, as stable reading"
            " null"
        )
    return None
