"""`GET /v1/actions`: operator actions with their reasons."""

from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field

from statesvc.api import kit
from statesvc.log.actions import (
    NEWEST_ACTION,
    ActionFilter,
    ActionPosition,
    RecordedAction,
    read_actions,
)

Beginning = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]


class ActionsParameters(kit.PageParameters):
    """Actions, the newest first."""

    actor: Annotated[
        Beginning,
        Field(description="Begins so: `key:` and the id of a key, `operator:` and a name."),
    ] = ""
    verb: Annotated[
        Beginning, Field(description="Begins so: `rollout.`, `subscription.pause`.")
    ] = ""
    target: Annotated[
        Beginning, Field(description="Begins so: `carrier ups`, `shipment <id>`.")
    ] = ""


@kit.operation(
    "GET /v1/actions",
    scope="ops",
    tag="actions",
    problems=(kit.Code.INVALID_CURSOR,),
    view=kit.Table(
        "recorded_at",
        kit.Column("actor", link="/console/record?actor={actor}"),
        "verb",
        kit.Column("target", link="/console/record?target={target}"),
        "details",
        empty="No action matches.",
    ),
    commands=(kit.Command(name="actions list"),),
    pages=(
        kit.ConsolePage(
            path="/console/record",
            title="Record",
            menu="Record",
            group="Operators",
            filter=("actor", "verb", "target"),
        ),
    ),
)
async def list_actions(
    context: kit.Context, call: kit.Call[ActionsParameters, None]
) -> kit.Page[RecordedAction]:
    """List operator actions.

    Each with its caller, subject, time and reason, as recorded in the log; readings of personal
    fields are among them. A page may be short, or empty, and still have a `next_cursor`. Months
    that were moved into the archive are not listed.
    """
    filters = call.parameters
    wanted = ActionFilter(actor=filters.actor, verb=filters.verb, target=filters.target)
    bound_to: dict[str, Any] = {"list": "actions", **asdict(wanted)}
    before = (
        NEWEST_ACTION
        if filters.cursor is None
        else kit.position_of(filters.cursor, ActionPosition, bound_to)
    )
    async with context.pool.connection() as connection:
        actions, more = await read_actions(connection, wanted, before=before, limit=filters.limit)
    return kit.Page(actions, None if more is None else kit.encode_position(more, bound_to))


OPERATIONS: Final = (list_actions,)
