"""Ledger of promises: one line for each ACK, outside the database, handed to the system before the
next request goes out.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.soak.traffic import Told

Body = tuple[str, str]
"""(carrier_id, SHA-256 of the body): byte-identical bodies of one carrier are one message."""


class Ledger:
    """Append-only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._cut = 0
        self._since: list[Told] | None = None

    def note(self, told: Told, *, message_id: str, duplicate: bool | None) -> None:
        """Note an ACK. `duplicate` as the answer says, None where the carrier's own ACK does
        not.
        """
        line = {
            "carrier_id": told.carrier_id,
            "body": sha256(told.body).hexdigest(),
            "message_id": message_id,
            "duplicate": duplicate,
            "event_ids": told.event_ids,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")
        if self._since is not None:
            self._since.append(told)

    def cut(self) -> None:
        """Mark that what is noted from now on may be forgotten."""
        self._cut = os.fstat(self._file).st_size
        self._since = []

    def forget(self) -> list[Told]:
        """Forget all since the cut, which is no promise any more: return the
        bodies, to be pushed again.
        """
        os.truncate(self._file, self._cut)
        forgotten, self._since = self._since or [], None
        return forgotten

    def close(self) -> None:
        os.close(self._file)


@dataclass(slots=True)
class Promises:
    """The ledger, read again."""

    acks: int = 0
    duplicates: int = 0
    messages: dict[Body, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The message ids that a body was acknowledged with: exactly one, or a retry was not
    recognised.
    """
    readable: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    events: set[tuple[str, str]] = field(default_factory=set)
    """(carrier_id, event_id)"""


def promises(lines: Iterable[str]) -> Promises:
    """Add up the lines."""
    made = Promises()
    for text in lines:
        line = json.loads(text)
        made.acks += 1
        made.duplicates += bool(line["duplicate"])
        made.messages[line["carrier_id"], line["body"]].add(line["message_id"])
        if line["event_ids"] is None:
            made.unreadable.add(line["message_id"])
        else:
            made.readable.add(line["message_id"])
            made.events |= {(line["carrier_id"], event_id) for event_id in line["event_ids"]}
    return made
