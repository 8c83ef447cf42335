"""`GET /v1/actions`: what operators did, and why."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from aiohttp import web
from pydantic import Field

from statesvc.database.pool import Connections
from statesvc.http.operation import Reply, Route, answer, parameters, route
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.log.action_list import NEWEST_ACTION, ActionPlace, RecordedAction, WantedActions, list_actions

Beginning = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]


class ActionsParameters(PageParameters):
    """Actions, the newest first."""

    actor: Annotated[Beginning, Field(description="Begins so: `key:` and the id of a key, `operator:` and a name.")] = ""
    verb: Annotated[Beginning, Field(description="Begins so: `rollout.`, `subscription.pause`.")] = ""
    target: Annotated[Beginning, Field(description="Begins so: `carrier ups`, `shipment <id>`.")] = ""


@dataclass(frozen=True, slots=True)
class ActionCalls:
    """The handler."""

    pool: Connections

    async def list(self, request: web.Request) -> Reply[Page[RecordedAction]]:
        """A page, newest first."""
        asked = parameters(request, ActionsParameters)
        wanted = WantedActions(actor=asked.actor, verb=asked.verb, target=asked.target)
        bound_to: dict[str, Any] = {"list": "actions", **asdict(wanted)}
        before = NEWEST_ACTION
        if asked.cursor is not None:
            batch_id, ordinal = decode_cursor(asked.cursor, bound_to, fields=2)
            if type(batch_id) is not int or type(ordinal) is not int or not (0, 0) <= (batch_id, ordinal) < NEWEST_ACTION:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
            before = ActionPlace(batch_id, ordinal)
        async with self.pool.connection() as connection:
            found, more = await list_actions(connection, wanted, before=before, limit=asked.limit)
        return answer(Page(found, None if more is None else encode_cursor([*more], bound_to)))


def routes(pool: Connections) -> Sequence[Route]:
    """The call."""
    return [
        route(
            "GET /v1/actions",
            ActionCalls(pool).list,
            operation_id="list_actions",
            summary="List operator actions",
            description=(
                "Who did what to what, when and why, as the log's entries say; readings of personal fields are among them. A page may "
                "be short, or empty, and still have a `next_cursor`. Months that were moved into the archive are not listed."
            ),
            scope="ops",
            tag="actions",
            parameters=ActionsParameters,
            response=Page[RecordedAction],
            problems=(Code.INVALID_CURSOR,),
        )
    ]
