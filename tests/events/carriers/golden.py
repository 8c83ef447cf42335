"""The event ids of the repository's own fixtures, as they landed: `golden_ids.json` next to this
module.

An id that changes without becoming an alias has the carrier's whole history appended again, so none
ever does once it has landed. `python -m tests.events.carriers.golden --write` adds those of new
fixtures; it never changes a landed one.
"""

import hmac
import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.event import Event
from events.identity.ids import identify
from tests.events.carriers.carrier_fixtures import (
    EXPECTED,
    described,
    expectations,
    fixture_paths,
    read,
)
from tests.schema_check import ROOT, base, git

FILE: Final = Path(__file__).parent / "golden_ids.json"
RELEASED: Final = Path(__file__).parent / "golden_ids_0_1_0.json"
"""The file as the first release had it."""

Ids = dict[str, dict[str, Any]]
"""By carrier and name of the fixture: the ids in the order of its readings, or the
cause why it is refused.
"""


def current(carrier_id: str) -> dict[str, Any]:
    """Return the ids that this code gives the fixtures of one carrier, under a digest
    key of the tests' own.
    """
    return {
        name: found if isinstance(found, str) else [event.event_id for event in found]
        for name, found in events(carrier_id).items()
    }


def released_changes(carrier_id: str) -> list[str]:
    """Return every id of 0.1.0 that is neither the event's id nor one of its aliases now."""
    before: Ids = json.loads(RELEASED.read_text("utf-8"))
    now = {
        name: found
        if isinstance(found, str)
        else [(event.event_id, *event.aliases) for event in found]
        for name, found in events(carrier_id).items()
    }
    return [
        f"{carrier_id}/{name}: {was} became {became}"
        for name, ids in before.get(carrier_id, {}).items()
        for was, became in zip_longest(ids, now[name], fillvalue=())
        if was not in became
    ]


def events(carrier_id: str) -> dict[str, Any]:
    """Return the events of each fixture of one carrier, or the cause why it is refused."""
    return {path.name: _events(carrier_id, path.read_bytes()) for path in fixture_paths(carrier_id)}


def _events(carrier_id: str, body: bytes) -> list[Event] | str:
    carrier = CARRIERS[carrier_id]
    try:
        readings = read(carrier, body).readings
    except UnreadableMessageError as error:
        return error.cause.value
    return [
        identify(reading, carrier_id=carrier_id, digest=_digest, allow_unnumbered=True)
        for reading in readings
    ]


def _digest(data: bytes) -> bytes:
    return hmac.digest(b"golden", data, "sha256")


def golden() -> Ids:
    found: Ids = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    return found


def landed() -> Ids:
    """Return the ids of the last landed commit, as far as git knows one; the
    committed ones without git.
    """
    commit = base()
    if commit is None:
        return golden()
    found: Ids = json.loads(git("show", f"{commit}:{FILE.relative_to(ROOT)}") or "{}")
    return found


def changes(carrier_id: str, before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return every id that changed, one line each; added fixtures are no change."""
    found = []
    for name, ids in before.items():
        where = f"{carrier_id}/{name}"
        if name not in now:
            found.append(
                f"{where}: the fixture is gone; ids that landed are watched for ever, so keep it"
            )
        elif isinstance(ids, str) or isinstance(now[name], str):
            found += [f"{where}: was {ids}, is {now[name]}"] if ids != now[name] else []
        else:
            pairs = zip(ids, now[name], strict=False)
            found += [
                f"{where}: the id of event {number} was {was}, is {became}"
                for number, (was, became) in enumerate(pairs)
                if was != became
            ]
            found += (
                [f"{where}: had {len(ids)} events, has {len(now[name])}"]
                if len(ids) != len(now[name])
                else []
            )
    return found


def write() -> int:
    """Write the ids as they are now, where no landed one changed; else return 1 and print which
    did.
    """
    now = {carrier_id: current(carrier_id) for carrier_id in sorted(CARRIERS)}
    changed = [
        line
        for carrier_id, before in landed().items()
        for line in changes(carrier_id, before, now.get(carrier_id, {}))
    ]
    if changed:
        sys.stderr.write("\n".join(["Event ids never change once they have landed:", *changed, ""]))
        return 1
    FILE.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
    for carrier_id in now:
        _expect_new_fixtures(carrier_id)
    return 0


def _expect_new_fixtures(carrier_id: str) -> None:
    """Write down what new fixtures say; an expectation that is there stays."""
    before, carrier = expectations(carrier_id), CARRIERS[carrier_id]
    found = {
        path.name: before.get(path.name)
        or {"shows": ["..."], **described(carrier_id, read(carrier, path.read_bytes()))}
        for path in fixture_paths(carrier_id)
    }
    if found != before:
        (EXPECTED / f"{carrier_id}.json").write_text(
            json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python -m tests.events.carriers.golden --write")
    sys.exit(write())
