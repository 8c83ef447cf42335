"""An entry of the log as a row: what the database and the files have of it in common. Pure."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from statesvc.log.entry_columns import ENTRY_KINDS, EntryKind

KINDS_BY_NAME: Final = {kind.name: kind for kind in ENTRY_KINDS}
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TARGET: Final = "shipment "


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of `kind`. `values`: its columns in the order of that kind, ids as text, times as datetimes."""

    index: int
    kind: EntryKind
    batch_id: int
    ordinal: int
    leaf_hash: bytes
    canonical: bytes = field(repr=False)
    sealed_part: bytes | None = field(repr=False)
    values: tuple[Any, ...] = field(repr=False)

    @property
    def sound(self) -> bool:
        """Whether the bytes are those that the hash is of."""
        return sha256(b"\x00" + self.canonical).digest() == self.leaf_hash

    @property
    def counted(self) -> tuple[Any, ...]:
        """As the verifier's statements select it: times in microseconds since 2000."""
        values = [(value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value for value in self.values]
        return (self.batch_id, self.ordinal, self.leaf_hash, self.canonical, self.sealed_part, *values)

    @property
    def row(self) -> tuple[Any, ...]:
        """What is brought back: its place, its bytes and its columns."""
        return (self.batch_id, self.ordinal, self.leaf_hash, self.canonical, self.sealed_part, *self.values)

    def shipments(self) -> tuple[str, ...]:
        """Whom it is about: ids as text."""
        named = dict(zip(self.kind.columns, self.values, strict=True))
        if self.kind.name == "action":
            target = named["target"]
            return (target.removeprefix(_TARGET),) if target.startswith(_TARGET) else ()
        found = (named["shipment_id"], named.get("claimed_shipment_id"))
        return tuple(dict.fromkeys(each for each in found if each is not None))
