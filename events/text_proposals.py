"""Proposals for the meaning of texts with an unknown code: for an operator, never a reading.

A text in a carrier's own table is a code. A text that other carriers' tables agree on, or a phrase
of `text_phrases.csv` (regular expressions, the first match), is proposed with that reason; an
unclear text is not. The tests measure the accuracy of proposals on the corpora.
"""

import csv
import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from events.clear_part import looks_like_code
from events.parsing.meanings import Meaning, meanings
from events.parsing.sentences import as_compared
from events.vocabulary import Kind, Reason, Status

# Words of a sentence about the future: it does not give the parcel's present state.
_NOT_YET: Final = re.compile(
    r"\b(?:will|shall|to be|can"
    r" be|expected|scheduled|soon|estimated|yet|wird|werden|soll|sera|ser[áa]|wordt|zal)\b"
    r"|voraussichtlich|prévue?|prevista?"
)

# Statuses that no sentence about the future can mean.
_OVER: Final = frozenset(
    {
        Status.DELIVERED,
        Status.RETURNED,
        Status.OUT_FOR_DELIVERY,
        Status.AVAILABLE_FOR_PICKUP,
        Status.DELIVERY_ATTEMPTED,
    }
)


class ProposedMeaning(NamedTuple):
    """A meaning that a code may have, and why: in our words, which quote no carrier."""

    meaning: Meaning
    why: str


def proposed(text: str | None) -> ProposedMeaning | None:
    """Propose a meaning for a text; None where it is unclear."""
    words = as_compared(text or "")
    if not words:
        return None
    if (known := _of_tables().get(words)) is not None:
        return ProposedMeaning(known, "the tables of other carriers read this text so")
    is_ahead = _NOT_YET.search(words) is not None
    for pattern, meaning in _phrases():
        if (match := pattern.search(words)) and not (is_ahead and meaning.status in _OVER):
            phrase = match[0].strip()
            return ProposedMeaning(
                meaning,
                f"its text holds `{phrase}`"
                if _is_ours(phrase, pattern)
                else "by a phrase of its text",
            )
    return None


@lru_cache(maxsize=8192)
def stated_status(text: str) -> Status | None:
    """Return the status that a whole text states: as the tables of carriers agree on it, or by a
    phrase that is all of it.
    """
    words = as_compared(text)
    if (known := _of_tables().get(words)) is not None:
        return known.status
    return next(
        (meaning.status for pattern, meaning in _phrases() if pattern.fullmatch(words)), None
    )


def _is_ours(phrase: str, pattern: re.Pattern[str]) -> bool:
    """Return whether all words of the match are in the pattern.

    A name between them may be a person's.
    """
    return all(word in pattern.pattern for word in re.findall(r"\w+", phrase))


@cache
def _phrases() -> tuple[tuple[re.Pattern[str], Meaning], ...]:
    rows = csv.DictReader(
        files("events").joinpath("text_phrases.csv").read_text("utf-8").splitlines()
    )
    return tuple(
        (
            re.compile(row["phrase"], re.IGNORECASE),
            Meaning(
                Kind.SCAN, Status(row["status"]), Reason(row["reason"]) if row["reason"] else None
            ),
        )
        for row in rows
    )


@cache
def _of_tables() -> dict[str, Meaning]:
    """Return the meanings of the texts in carriers' tables, where all of them agree."""
    found: dict[str, list[Meaning]] = {}
    for table in sorted(
        entry.name for entry in files("events.carriers").iterdir() if entry.name.endswith(".csv")
    ):
        for key, meaning in meanings(table).items():
            for part in key:
                if not looks_like_code(part) and "*" not in part:
                    found.setdefault(as_compared(part), []).append(meaning)
    return {
        words: several[0]
        for words, several in found.items()
        if len({(each.kind, each.status) for each in several}) == 1
        and several[0].status is not None
    }
