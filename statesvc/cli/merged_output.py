"""Merged output of several services for one command: rows become one table, documents one list, and lines say whose they are."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(slots=True)
class MergedTable:
    """The rows of all services under the same headings."""

    headings: Sequence[str]
    wide: Collection[str]
    rows: list[Sequence[object]] = field(default_factory=list)


@dataclass(slots=True)
class MergedOutput:
    """Answers of the services so far. `profile`: the one that answers now."""

    profile: str = ""
    parts: list[MergedTable | str] = field(default_factory=list)
    documents: list[Mapping[str, Any]] = field(default_factory=list)

    def table(
        self, headings: Sequence[str], rows: Iterable[Sequence[object]], wide: Collection[str]
    ) -> None:
        """Add rows to the table with these headings."""
        tables = (
            part
            for part in self.parts
            if isinstance(part, MergedTable) and part.headings == ["PROFILE", *headings]
        )
        table = next(tables, None)
        if table is None:
            table = MergedTable(["PROFILE", *headings], wide)
            self.parts.append(table)
        table.rows += [[self.profile, *row] for row in rows]

    def line(self, text: str) -> None:
        """Add a line, which names who said it."""
        self.parts.append(f"{self.profile}: {text}")

    def document(self, value: Mapping[str, Any] | Sequence[Any]) -> None:
        """Add a document, or those of a list."""
        self.documents += [
            {"profile": self.profile, **each}
            for each in ([value] if isinstance(value, Mapping) else value)
        ]


_MERGED: Final[ContextVar[MergedOutput | None]] = ContextVar("merged", default=None)


def merged_output() -> MergedOutput | None:
    """Return where the results go, if they are one service's of several."""
    return _MERGED.get()


@contextmanager
def merging() -> Iterator[MergedOutput]:
    """Collect results instead of writing them."""
    merged = MergedOutput()
    token = _MERGED.set(merged)
    try:
        yield merged
    finally:
        _MERGED.reset(token)
