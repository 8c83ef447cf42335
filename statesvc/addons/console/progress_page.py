"""Work in parts: each page makes a call, and carries the results of the former calls."""

from collections.abc import Iterable, Mapping

from statesvc.addons.console.screen import PageRequest, Values
from statesvc.http.call_progress import Progress
from statesvc.http.inner_calls import Json
from statesvc.http.problem import Code, Problem


async def next_part(
    visit: PageRequest, name: str, order: Mapping[str, Json], values: Values, **given: Json
) -> tuple[Progress, Mapping[str, Json]]:
    """Make the next call of work in parts; return the progress with the former page's values."""
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
    """Return a form's values to carry along."""
    return {name: values.get(name, "") for name in names}


def count_in(values: Values, name: str = "total") -> int:
    """Return a count that the former page carried."""
    text = values.get(name) or "0"
    if not text.isdecimal() or len(text) > 18:
        raise Problem(Code.INVALID_REQUEST, f"`{name}` is no number: begin again")
    return int(text)
