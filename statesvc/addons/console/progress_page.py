"""Work that is done in parts, as much as one call may: a page says how far it is and asks for the next part, by itself or by its button."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from statesvc.addons.console.screen import PageRequest, Shown, Values
from statesvc.http.call_progress import Progress
from statesvc.http.inner_calls import Json
from statesvc.http.problem import Code, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """Progress of work. `trouble`: why it stopped, or does not go on by itself; `then`: the path to go to.

    `order`: what the form stated.
    """

    progress: Progress
    sentences: Sequence[str]
    then: str
    then_label: str
    order: Values
    trouble: str | None = None

    @property
    def next_part(self) -> Values | None:
        """Arguments of the next part; None at the end."""
        if not self.progress.goes_on:
            return None
        counts = {
            name: str(count)
            for name, count in {**self.progress.sums, "total": self.progress.total}.items()
        }
        return {**self.order, **counts, "cursor": self.progress.cursor or ""}

    @property
    def page(self) -> Shown:
        return Shown("progress.html", {"work": self})


async def next_part(
    visit: PageRequest, name: str, order: Mapping[str, Json], values: Values, **given: Json
) -> tuple[Progress, Mapping[str, Json]]:
    """Make one more call of work in parts, and return how far it is with what the page before sent along."""
    parts = visit.calls.parts(name)
    sums = {
        name: count_in(values, name) for name in values if name.partition(".")[0] in parts.summed
    }
    cursor = values.get("cursor")
    answer = await visit.call_api(
        name, {**order, **({"cursor": cursor} if cursor else {})}, **given
    )
    return Progress(total=count_in(values), sums=sums).after(answer, parts), answer


def stated(values: Values, names: Iterable[str]) -> Values:
    """Return what a form stated, to be sent along."""
    return {name: values.get(name, "") for name in names}


def count_in(values: Values, name: str = "total") -> int:
    """Return a count that the page before sent along."""
    text = values.get(name) or "0"
    if not text.isdecimal() or len(text) > 18:
        raise Problem(Code.INVALID_REQUEST, f"`{name}` is no number: begin again")
    return int(text)
