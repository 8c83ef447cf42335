"""Progress of work that is done in parts, each as much as fits into a call.

A command and a page draw it in their own ways.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NEXT: str = "next_cursor"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallParts:
    """Counts in the answers of such an operation.

    `summed`: what one call did; a count, or counts by reason.

    `left`: what is not done yet, where the answers say so; else the first of `summed` is what is
    worked through. `repeats`: the call is made again as it was, while some is left, for it needs no
    cursor. `first`: members of the first answer that hold for all. `rows`: lists of which equal
    rows are joined, with the sum of the named member; an empty name: they have none.
    """

    summed: tuple[str, ...]
    left: str = ""
    repeats: bool = False
    first: tuple[str, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress after some calls: `done` of `total` (0: nobody knows).

    `cursor`: what the next call goes on with; `goes_on`: there is one to make.
    """

    cursor: str | None = None
    done: int = 0
    total: int = 0
    sums: Mapping[str, int] = field(default_factory=dict)
    """By name; of counts by reason, by `name.reason`."""
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    goes_on: bool = True

    @property
    def members(self) -> Mapping[str, Any]:
        """The sums and rows as an answer has them."""
        nested: dict[str, Any] = {**self.rows}
        for name, count in self.sums.items():
            member, _, reason = name.partition(".")
            if reason:
                nested.setdefault(member, {})[reason] = count
            else:
                nested[member] = count
        return nested

    def after(self, answer: Mapping[str, Any], parts: CallParts) -> "Progress":
        """Return the progress with one more call."""
        counts = _flat({name: answer[name] for name in parts.summed})
        sums = {**self.sums}
        for name, count in counts.items():
            sums[name] = sums.get(name, 0) + count
        rows = {
            name: _joined([*self.rows.get(name, ()), *answer[name]], counted)
            for name, counted in parts.rows.items()
        }
        cursor = None if parts.repeats else answer[NEXT]
        left = answer[parts.left] if parts.left else 0
        goes_on = (
            bool(left and any(answer[name] for name in parts.summed))
            if parts.repeats
            else cursor is not None
        )
        worked = sums[parts.summed[0]]
        if parts.left:
            total = max(self.total, left + worked)
            done = total - left
        else:
            total = max(self.total, worked) if self.total else 0
            done = worked if goes_on else total
        return Progress(
            cursor=cursor, done=done, total=total, sums=sums, rows=rows, goes_on=goes_on
        )


def _joined(rows: Iterable[Mapping[str, Any]], counted: str) -> list[dict[str, Any]]:
    """Return each row once, the most frequent first."""
    counts: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for row in rows:
        counts[tuple(each for each in row.items() if each[0] != counted)] += row.get(counted, 1)
    return [
        {**dict(row), **({counted: count} if counted else {})}
        for row, count in counts.most_common()
    ]


def _flat(counts: Mapping[str, Any]) -> dict[str, int]:
    flat: dict[str, int] = {}
    for name, count in counts.items():
        flat |= (
            {f"{name}.{reason}": each for reason, each in count.items()}
            if isinstance(count, Mapping)
            else {name: count}
        )
    return flat
