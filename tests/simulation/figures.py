"""Figures of a run, simulated or real, and the table of such runs. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Self

HEAD: Final = (
    "receiver",
    "peak in flight",
    "sent/s in trouble",
    "sent/s in all",
    "refused %",
    "recovers in s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one run.

    `in_trouble`, `in_all`: notifications taken a second; None: it had no trouble.
    """

    receiver: str
    peak: int
    in_trouble: float | None
    in_all: float
    refused_share: float
    recovers_seconds: float

    def cells(self) -> list[str]:
        """Return the cells in the order of the head."""
        return [
            self.receiver,
            str(self.peak),
            "-" if self.in_trouble is None else f"{self.in_trouble:.0f}",
            f"{self.in_all:.0f}",
            f"{100 * self.refused_share:.1f}",
            f"{self.recovers_seconds:.1f}",
        ]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def table(runs: Iterable[Figures]) -> str:
    """Format the runs as Markdown."""
    return rows(HEAD, [run.cells() for run in runs])


def rows(head: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
