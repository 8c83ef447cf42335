"""`/v1/notices`: what the service did or saw by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from aiohttp import web
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from statesvc.database.pool import Connections
from statesvc.http.api_keys import caller_of
from statesvc.http.operation import Route, operation, parameters
from statesvc.http.paging import Page, PageParameters, decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem
from statesvc.http.response import answer
from statesvc.operations.notices import NEWEST, NoticeKind, list_notices, mark_seen


class NoticesParameters(PageParameters):
    """Notices, the newest first."""

    unseen: Annotated[bool, Field(description="Only those that nobody marked as seen.")] = False


class NoticeParameters(BaseModel):
    """One notice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    notice_id: Annotated[int, Field(ge=1, le=NEWEST)]


class NoticeShown(BaseModel):
    """One notice. `target` names what it is about, as operator actions do."""

    model_config = ConfigDict(extra="forbid")

    notice_id: int
    kind: NoticeKind
    target: str
    created_at: AwareDatetime
    details: Annotated[dict[str, Any], Field(description="Why, and what to do about it.")]
    seen_at: AwareDatetime | None
    seen_by: str | None
    told_at: Annotated[AwareDatetime | None, Field(description="When the operator's webhook (STATESVC_OPERATOR_URL) took it.")]


@dataclass(frozen=True, slots=True)
class Notices:
    """The handlers."""

    pool: Connections

    async def list(self, request: web.Request) -> web.StreamResponse:
        """A page, newest first."""
        asked = parameters(request, NoticesParameters)
        bound_to: dict[str, Any] = {"list": "notices", "unseen": asked.unseen}
        before = NEWEST
        if asked.cursor is not None:
            (before,) = decode_cursor(asked.cursor, bound_to, fields=1)
            if type(before) is not int or not 0 < before <= NEWEST:
                raise Problem(Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one")
        async with self.pool.connection() as connection:
            notices, more = await list_notices(connection, unseen_only=asked.unseen, before=before, limit=asked.limit)
        return answer({"items": notices, "next_cursor": None if more is None else encode_cursor([more], bound_to)})

    async def seen(self, request: web.Request) -> web.StreamResponse:
        """Says that somebody saw it."""
        notice_id = parameters(request, NoticeParameters).notice_id
        async with self.pool.connection() as connection:
            notice = await mark_seen(connection, notice_id, actor=caller_of(request).actor)
        if notice is None:
            raise Problem(Code.NOT_FOUND, f"there is no notice {notice_id}")
        return answer(notice)


def routes(pool: Connections) -> Sequence[Route]:
    """The calls about notices."""
    notices = Notices(pool)
    return [
        Route(
            "GET",
            "/v1/notices",
            notices.list,
            operation(
                summary="List notices",
                description="What the service did or saw by itself and somebody should know: subscribers that only fail, are told no more, "
                "or are well again.",
                scope="ops",
                tag="notices",
                parameters=NoticesParameters,
                response=Page[NoticeShown],
                problems=(Code.INVALID_CURSOR,),
            ),
        ),
        Route(
            "POST",
            "/v1/notices/{notice_id}/seen",
            notices.seen,
            operation(
                summary="Mark a notice as seen",
                description="Recorded as an operator action; who saw it first stays.",
                scope="ops",
                tag="notices",
                parameters=NoticeParameters,
                response=NoticeShown,
                problems=(Code.NOT_FOUND,),
            ),
        ),
    ]
