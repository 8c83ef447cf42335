"""Codes of mappings: as an operator writes them, and in their clear form in the log.

Texts are never stored in clear: in place of a code a stand-in is stored (`text-...`), and for a
text that accompanies codes, or is all that the carrier prints, its digest. So a mapping of a text
matches without any table or log that holds the text.
"""

from dataclasses import dataclass
from typing import NamedTuple

from events.clear_part import TEXT, Digest, looks_like_code, stand_in
from events.crypto.keyring import Keyring, mapped_text_context
from events.identity.ids import text_digest


class MappedCode(NamedTuple):
    """A code in its clear form.

    Type and code None: the carrier prints none; reason and text None: any.
    """

    carrier_id: str
    raw_type: str | None
    raw_code: str | None
    raw_reason: str | None = None
    raw_text: str | None = None

    @property
    def is_clear(self) -> bool:
        """True if all of it may stand in a table and in the log."""
        return all(part is None or looks_like_code(part) for part in self[1:])

    @property
    def stand_ins(self) -> list[str]:
        """The parts that stand for texts, as far as they show it."""
        places = [part for part in self[1:4] if part is not None and part.startswith(f"{TEXT}-")]
        return places if self.raw_text is None else [*places, self.raw_text]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCode:
    """A code as the carrier prints it. `text`: the text of the event as a whole; left out: any."""

    carrier_id: str
    raw_type: str | None = None
    raw_code: str | None = None
    raw_reason: str | None = None
    raw_text: str | None = None

    @property
    def refusal(self) -> str | None:
        """Reason why it cannot be mapped."""
        if self.raw_type is None and self.raw_code is None and self.raw_text is None:
            return (
                "name the code: its type, its code, or the text that the carrier prints instead"
                " of one"
            )
        if TEXT in {self.raw_type, self.raw_code}:
            return (
                f"`{TEXT}` in a list of unknown codes stands for any text: name the text itself, or"
                " what stands for it in the history"
            )
        if "" in {self.raw_type, self.raw_code, self.raw_reason, self.raw_text}:
            return "leave out what the carrier does not print"
        return None

    def clear(self, digest: Digest) -> MappedCode:
        """Return its clear form, as stored in the log. `digest` is the carrier's."""
        raw_type, raw_code, raw_reason = (
            self._clear(part, digest) for part in (self.raw_type, self.raw_code, self.raw_reason)
        )
        raw_text = None if self.raw_text is None else text_digest(self.raw_text, digest)
        return MappedCode(self.carrier_id, raw_type, raw_code, raw_reason, raw_text)

    def texts(self, digest: Digest) -> dict[str, str]:
        """Return its texts by their stand-ins."""
        clear = self.clear(digest)
        written = (self.raw_type, self.raw_code, self.raw_reason, self.raw_text)
        pairs = zip(clear[1:], written, strict=True)
        return {
            stands: text
            for stands, text in pairs
            if stands is not None and text is not None and stands != text
        }

    def _clear(self, part: str | None, digest: Digest) -> str | None:
        return (
            part
            if part is None or looks_like_code(part)
            else stand_in(part, self.carrier_id, digest)
        )


def seal_text(keyring: Keyring, carrier_id: str, stands: str, text: str) -> bytes:
    return keyring.mapped_texts.seal(text.encode(), mapped_text_context(carrier_id, stands))


def open_text(keyring: Keyring, carrier_id: str, stands: str, sealed: bytes) -> str:
    """Open the output of `seal_text`. Raises SealError."""
    return keyring.mapped_texts.open(sealed, mapped_text_context(carrier_id, stands)).decode()
