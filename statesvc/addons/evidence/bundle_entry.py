"""An entry of a bundle, read: its document, and the personal part where it is shown. Pure."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from events.entry.kinds import read_raw
from events.event import Raw
from events.identity.ids import printed_code
from statesvc.addons.evidence.bundle import ERASED, WITHHELD

ERASED_TEXT: Final = "erased at the person's request"
WITHHELD_TEXT: Final = "not shown to this reader"
_HIDDEN: Final[Mapping[str, str]] = {ERASED: ERASED_TEXT, WITHHELD: WITHHELD_TEXT}
_SALT_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """`part`: the personal values, empty where they are not shown, for the reason `part_state`."""

    index: int
    kind: str
    document: Mapping[str, Any]
    part: Mapping[str, Any]
    part_state: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "BundleEntry":
        part = (
            {}
            if entry["part"] is None
            else orjson.loads(base64.b64decode(entry["part"])[_SALT_BYTES:])
        )
        return cls(
            entry["index"],
            entry["kind"],
            orjson.loads(entry["canonical"]),
            part,
            entry["part_state"],
        )

    @property
    def number(self) -> int:
        """Number of the statement, the same in every form of the evidence, the console and the
        API: the event's version.
        """
        version: int = self.document["version"]
        return version

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.document["occurred_at"])

    @property
    def hidden(self) -> str | None:
        """Reason why personal values are not shown; None: they are, or there are none."""
        return _HIDDEN.get(self.part_state)

    @property
    def location(self) -> Mapping[str, str]:
        """Place of the event: the parts that are stated, as exact as this reader may see them."""
        stated = {**(self.document.get("location") or {}), **self.part}
        return {
            part: stated[part]
            for part in ("facility", "city", "region", "postal_code", "country")
            if stated.get(part)
        }

    @property
    def place(self) -> str:
        return one_line(self.location.values())

    @property
    def code(self) -> str:
        """The carrier's code, as printed where that is shown."""
        if "raw" in self.part:
            return printed_code(self.raw) or ""
        return self.document.get("carrier_code") or ""

    @property
    def raw(self) -> Raw:
        """The carrier's codes as printed, where they are shown."""
        return read_raw(self.part.get("raw") or self.document.get("raw") or {})


def one_line(parts: Iterable[str]) -> str:
    """Join the parts of a place, each once: some carriers print region and country
    in the city's name, too.
    """
    said: list[str] = []
    for part in parts:
        if part not in said:
            said += [piece.strip() for piece in part.split(",")]
    return ", ".join(said)


def first_personal(entries: Iterable[BundleEntry], name: str) -> str | None:
    """Return the first value of this name that is shown."""
    return next((value for entry in entries if (value := entry.part.get(name))), None)
