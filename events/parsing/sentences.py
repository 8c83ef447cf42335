"""Texts that are read as codes: whole, or with open parts such as a place or a day."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from events.parsing.meanings import Meaning
from events.parsing.text import without_markup


def by_sentence(texts: Mapping[str, Meaning]) -> Callable[[str], Meaning | None]:
    """Return a reader of texts by a table in lower case, with `*` for anything.

    Without the full stop. The text itself goes before a row with a `*`, and of those the first
    match.
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
