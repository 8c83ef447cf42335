"""Texts of a carrier that are read as codes: as they stand in its table, or with what a sentence names there (a place, a day) left open."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from events.parsing.meanings import Meaning
from events.parsing.text import without_markup


def by_sentence(texts: Mapping[str, Meaning]) -> Callable[[str], Meaning | None]:
    """Return a reader of texts by a table in lower case without the full stop, where `*` stands for anything.

    The text itself goes before a row with a `*`, and of those the first that fits.
    """
    patterns = tuple(
        (re.compile(".*".join(map(re.escape, words.split("*")))), meaning)
        for words, meaning in texts.items()
        if "*" in words
    )

    @lru_cache(maxsize=4096)
    def meant(printed: str) -> Meaning | None:
        words = as_compared(printed)
        return texts.get(words) or next(
            (meaning for pattern, meaning in patterns if pattern.fullmatch(words)), None
        )

    return meant


def as_compared(printed: str) -> str:
    """Return a text as tables of texts spell it: without markup, full stop and capitals."""
    return (without_markup(printed) or "").casefold().rstrip(".")
