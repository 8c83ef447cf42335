"""Work that is done in parts, as much as one call may: a page says how far it is and asks for the next part, by itself or by its button."""

from collections.abc import Sequence
from dataclasses import dataclass

from statesvc.console.screen import Shown, Values
from statesvc.http.problem import Code, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """How far it is. `done` of `total` (0: nobody knows); `next_part`: what the next part is asked with, None at the end.

    `trouble`: why it stopped, or does not go on by itself; `then`: the path to go to.
    """

    sentences: Sequence[str]
    then: str
    then_label: str
    done: int = 0
    total: int = 0
    next_part: Values | None = None
    trouble: str | None = None

    @property
    def page(self) -> Shown:
        """That says so."""
        return Shown("progress.html", {"work": self})


def count_in(values: Values, name: str = "total") -> int:
    """A count that the page before sent along."""
    text = values.get(name) or "0"
    if not text.isdecimal() or len(text) > 18:
        raise Problem(Code.INVALID_REQUEST, f"`{name}` is no number: begin again")
    return int(text)
