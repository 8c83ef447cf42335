"""API calls of commands, to a service or in this process: single calls, and work in parts."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, NamedTuple

from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import ListedOperation, operation_named
from statesvc.cli.output import end_progress, show_progress
from statesvc.http.call_progress import Progress

# Parameters and answer of a call: values as JSON has them.
Json = Any
JSON: Final = "application/json"
_WRONG_USE: Final = frozenset({"invalid_request", "invalid_cursor", "unknown_carrier"})


class File(NamedTuple):
    """The body of an answer. `headers`: those of the answer."""

    content: bytes
    headers: Mapping[str, str]


class Calls:
    """Calls of a service, or in this process. Each raises CommandError where it is refused.

    `named`: `database` or `service`, and the name of it.
    """

    named: Mapping[str, str]

    async def call(
        self,
        operation_id: str,
        body: Mapping[str, Json] | None = None,
        /,
        *,
        why: str = "",
        **given: Json,
    ) -> Json:
        """Make a call and return the answer's JSON; None without a body.

        `why`: of a call without a member for it in its body.
        """
        answer = await self.fetch(operation_id, body, accept=JSON, why=why, **given)
        try:
            return json.loads(answer.content) if answer.content else None
        except ValueError:
            raise CommandError(
                f"{self.named.get('service')} answered no JSON: is it the address of a service?"
            ) from None

    async def fetch(
        self,
        operation_id: str,
        body: Mapping[str, Json] | None = None,
        /,
        *,
        accept: str,
        why: str = "",
        **given: Json,
    ) -> File:
        """Make a call and return the answer as a file of the media type `accept`."""
        raise NotImplementedError


class ServiceAwayError(CommandError):
    """The service does not answer."""


class CallRefusedError(CommandError):
    """A call was refused. `problem`: the document of RFC 9457."""

    def __init__(self, problem: Mapping[str, Any], operation: ListedOperation) -> None:
        super().__init__(
            _sentence(problem, operation), exit_code=2 if problem.get("code") in _WRONG_USE else 1
        )
        self.problem = problem


def _sentence(problem: Mapping[str, Any], operation: ListedOperation) -> str:
    said = str(problem.get("detail") or problem.get("title"))
    flaws = [
        (_place(flaw["pointer"], operation), flaw["detail"])
        for flaw in problem.get("errors", ())
        if flaw["detail"] != said
    ]
    # which options are wrong says it all
    before = [] if flaws and all(place for place, _ in flaws) else [said]
    return "; ".join([*before, *(f"{place}: {why}" if place else why for place, why in flaws)])


def _place(pointer: str, operation: ListedOperation) -> str:
    """Return the option of a flaw."""
    _, _, *parts = pointer.split("/") if pointer.count("/") > 1 else ("", "", "")
    field = operation.fields.get(".".join(parts)) or operation.fields.get(parts[0])
    return ".".join(parts) if field is None or field.type == "object" else field.option


async def work(
    calls: Calls,
    operation_id: str,
    order: Mapping[str, Json],
    /,
    *,
    counted: str,
    total: int = 0,
    why: str = "",
    **given: Json,
) -> AsyncGenerator[tuple[Progress, Json], None]:
    """Make the calls of work in parts, in turn; show and yield progress and answer of each.

    `counted`: the noun of the counted items, in the plural.
    """
    parts = operation_named(operation_id).parts
    if parts is None:
        raise ValueError(f"{operation_id} is not done in parts")
    progress = Progress(total=total)
    try:
        while progress.goes_on:
            cursor = {} if progress.cursor is None else {"cursor": progress.cursor}
            answer = await calls.call(operation_id, {**order, **cursor}, why=why, **given)
            progress = progress.after(answer, parts)
            show_progress(progress.done, progress.total or progress.done, counted, goes_on=True)
            yield progress, answer
    finally:
        end_progress()
