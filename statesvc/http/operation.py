"""Contract of a call: its scope, what it takes, what it answers.

Checked before the handler runs, and shown in OpenAPI.

An operation is declared once, on the function that runs it, and has three faces: HTTP, a command, a
form of the console.

    @operation("POST /v1/things/{thing_id}/paint", scope="ops", problems=(Code.NOT_FOUND,))
    async def paint_thing(context: Context, call: Call[ThingParameters, Paint]) -> Thing: ...

The function's name is the operation's, its docstring the texts of the document, the models of its
call what is checked, and what it returns the answer. A query parameter or a member that the models
do not name is refused, so that a typing error never silently widens a list. What an answer is (a
TypedDict, a dataclass, a pydantic model) is written to JSON as it stands.

A call whose handler reads its body or writes its response itself (webhooks, streams) is a `Route`
with a handler of its own.
"""

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    overload,
)

import orjson
from aiohttp import hdrs, web
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from statesvc.http.call import WHY_CHARS_MAX, WHY_HEADER, Call
from statesvc.http.call_progress import CallParts
from statesvc.http.closed_model import ClosedModel
from statesvc.http.faces import Command, ConsolePage, Form
from statesvc.http.keys.api_keys import Caller, Keys, caller_of
from statesvc.http.keys.key_store import Scope
from statesvc.http.paging import next_link
from statesvc.http.preferences import PREFER, WARNINGS, with_warnings
from statesvc.http.problem import CONTENT_TYPE, NO_CONTENT, NOT_MODIFIED, OK, Code
from statesvc.http.views import Views

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
ScopeWord = Literal["ingest", "read", "audit", "pii", "subscriptions", "ops", "admin"]


class PartialChange(ClosedModel):
    """A body that changes what it names.

    A member that is left out stays as it is, so no member has a default to show.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of a request, with members without defaults."""
        described = handler(schema)
        for member in handler.resolve_ref_schema(described).get("properties", {}).values():
            member.pop("default", None)
        return described


PARAMETERS: Final = web.RequestKey("parameters", BaseModel)
BODY: Final = web.RequestKey("body", BaseModel)

CALL: Final = web.RequestKey("call", Call)


class RequestHeader(NamedTuple):
    """A header that a call reads. `pattern`: as in JSON Schema."""

    description: str
    pattern: str | None = None
    chars_max: int | None = None


# For `request_headers` of operations that use `Call.why`.
WHY_TAKEN: Final = {
    WHY_HEADER: RequestHeader(
        "Why it is done: stands in the log for ever, so nothing personal.",
        pattern=r"^[^\x00-\x1f\x7f-\xa0\xad]*$",
        chars_max=WHY_CHARS_MAX,
    )
}

PREFER_TAKEN: Final = {
    PREFER: RequestHeader(
        "`handling=strict`: what means nothing here is refused (422, with the word that was"
        " probably meant), where the answer would have `warnings`. The default from release 0.3 on."
    )
}
PREFERENCE_APPLIED: Final = {"Preference-Applied": "`handling=strict`, where it was asked for."}

DEADLINE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class RawAnswer(Generic[T]):
    """An answer that an operation wrote itself: a `T` in JSON, or a file."""

    content: bytes = field(repr=False)
    media_type: str = "application/json"
    charset: str | None = None


class Reply(web.Response, Generic[T]):
    """A response with a `T` in JSON."""


def answer(value: T, *, status: int = OK, headers: Mapping[str, str] | None = None) -> Reply[T]:
    """Return the value as `application/json`. Times come out as RFC 3339 with offset."""
    return Reply(
        body=printed(value), status=status, content_type="application/json", headers=headers
    )


def printed(value: object) -> bytes:
    return orjson.dumps(value, default=_model_members)


def _model_members(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def tagged(call: Call[Any, Any], value: T, *, head_hash: bytes) -> RawAnswer[T]:
    """Return the value with an `ETag` of its history and content.

    304 without a body where the caller has that already.

    `head_hash`: of the last entry that the value is made of. A version may stand for other entries
    after a restore, a hash does not.
    """
    content = printed(value)
    tag = f"{head_hash[:8].hex()}-{hashlib.blake2b(content, digest_size=9).hexdigest()}"
    call.headers[hdrs.ETAG] = f'"{tag}"'
    if tag in call.known_tags or "*" in call.known_tags:
        call.status = NOT_MODIFIED
        return RawAnswer(b"")
    return RawAnswer(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Credential that a call takes in place of a key.

    `scheme`: as OpenAPI describes it, under its `name`.

    `caller` answers None where the request has none of this kind, so that a key is needed, and
    raises the problem 401 for a bad one.
    """

    name: str
    scheme: Mapping[str, str]
    caller: Callable[[web.Request, Keys], Awaitable[Caller | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T]):
    """The contract of one call; as a decorator, with the function that runs it.

    `run` takes a context and a Call.

    `where`: method and path. `operation_id` names it in generated clients: verb and noun, never
    changed. `parameters` is a model of the path's and the query's parameters (a field named as in
    the path is the path's). `statuses` describes the answers in words. `request` is a body that is
    checked; where the handler reads the body itself, `accepts` has the media types and their
    contents. `response_headers` (of answers that are no problem) are described in words. `rules`:
    sentences about what else is refused as `invalid_request`, where no schema can say it. `checked`
    False: the handler takes any query and checks the rest itself (webhooks).
    `carrier_authenticated`: by a carrier's own scheme, or a key with scope `ingest`. `is_computed`:
    it takes long to compute, so that a key may have but a few such calls under way. `credential`:
    accepted in place of a key. `is_body_optional`: without a body all members have their defaults.
    `streamed` is the model of each event of an answer that is a stream; `deadline_seconds` None: it
    may take as long as it likes. `parts`: it does as much as fits into a call. `view`: what its
    answer looks like to people. `commands`, `forms`, `pages`: its other faces, where one call is
    all that they make.
    """

    where: str = field(default="", kw_only=False)
    operation_id: str = ""
    summary: str = ""
    scope: Scope | ScopeWord | None
    credential: Credential | None = None
    description: str = ""
    tag: str = ""
    parameters: type[BaseModel] | None = None
    request: type[BaseModel] | None = None
    is_body_optional: bool = False
    accepts: Mapping[str, Any] = field(default_factory=dict)
    request_headers: Mapping[str, RequestHeader] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response: type[T] | None = None
    streamed: type[Any] | None = None
    response_types: tuple[str, ...] = ("application/json",)
    statuses: Mapping[int, str] = field(default_factory=lambda: {OK: "done"})
    problems: tuple[Code, ...] = ()
    rules: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = (CONTENT_TYPE,)
    checked: bool = True
    carrier_authenticated: bool = False
    is_computed: bool = False
    deadline_seconds: float | None = DEADLINE_SECONDS
    run: Callable[[Any, Call[Any, Any]], Awaitable[T]] | None = None
    parts: CallParts | None = None
    view: Views = ()
    commands: tuple[Command, ...] = ()
    forms: tuple[Form, ...] = ()
    pages: tuple[ConsolePage, ...] = ()

    def __call__(self, run: Callable[[Any, Call[Any, Any]], Awaitable[R]]) -> "Operation[R]":
        """Make the operation of the function that runs it.

        Name, texts and models are the function's, unless they were given.
        """
        _, call, response = inspect.get_annotations(run).values()
        parameters, request = (None if model is type(None) else model for model in get_args(call))
        summary, _, description = inspect.cleandoc(run.__doc__ or "").partition("\n\n")
        contract: Operation[Any] = self
        return replace(
            contract,
            operation_id=self.operation_id or run.__name__,
            summary=self.summary or summary.removesuffix("."),
            description=self.description or description.replace("\n", " ").replace("  ", "\n\n"),
            parameters=parameters,
            request=request,
            response=_response_model(response),
            run=run,
        )

    @property
    def is_limited(self) -> bool:
        """True if a key's limits hold: not for ingest, which has its own, and not for streams."""
        return (
            self.scope is not None
            and self.scope != Scope.INGEST
            and self.deadline_seconds is not None
        )


operation = Operation


def _response_model(answered: Any) -> Any:  # noqa: ANN401 - an annotation
    if get_origin(answered) is RawAnswer:
        (answered,) = get_args(answered)
    return None if answered is type(None) else answered


Run = Callable[[Call[Any, Any]], Awaitable[object]]


class Route:
    """One call: where it is, who answers, what it promises.

    `run`: the operation in its context; None: only its handler answers.
    """

    __slots__ = ("handler", "method", "operation", "path", "run")

    @overload
    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[[web.Request], Awaitable[Reply[T]]],
        operation: Operation[T],
    ) -> None: ...

    @overload
    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
        operation: Operation[None],
    ) -> None: ...

    def __init__(self, method: str, path: str, handler: Handler, operation: Operation[Any]) -> None:
        self.method = method
        self.path = path
        self.handler = handler
        self.operation = operation
        self.run: Run | None = None


def routes_of(operations: Iterable[Operation[Any]], context: object) -> list[Route]:
    """Return the operations as HTTP has them, at work in this context."""
    return [_bound(operation, context) for operation in operations]


def _bound(operation: Operation[Any], context: object) -> Route:
    run = operation.run
    if run is None:
        raise ValueError(f"{operation.operation_id} has no function that runs it")

    def run_here(call: Call[Any, Any]) -> Awaitable[object]:
        return run(context, call)

    async def handler(request: web.Request) -> web.StreamResponse:
        call = call_of(request)
        value = await run_here(call)
        call.headers.update(next_link(request, value, operation.parameters))
        return _response(operation, call, with_warnings(value, request.get(WARNINGS)))

    method, _, path = operation.where.partition(" ")
    route = Route(method, path, handler, operation)
    route.run = run_here
    return route


def call_of(request: web.Request) -> Call[Any, Any]:
    """Return the call that a checked request makes: one object for as long as it lasts."""
    if CALL not in request:
        request[CALL] = Call(
            caller=caller_of(request),
            parameters=request.get(PARAMETERS),
            body=request.get(BODY),
            said=header_text(request.headers.get(WHY_HEADER, "")),
            accept=request.headers.get(hdrs.ACCEPT, "*/*"),
            known_tags=[tag.value for tag in request.if_none_match or ()],
        )
    return request[CALL]


def _response(operation: Operation[Any], call: Call[Any, Any], value: object) -> web.Response:
    if value is None:
        return web.Response(status=NO_CONTENT, headers=call.headers)
    if call.status == NOT_MODIFIED:
        return web.Response(status=NOT_MODIFIED, headers=call.headers)
    if isinstance(value, RawAnswer):
        status = call.status or next(iter(operation.statuses))
        return web.Response(
            body=value.content,
            status=status,
            content_type=value.media_type,
            charset=value.charset,
            headers=call.headers,
        )
    return answer(value, status=call.status or next(iter(operation.statuses)), headers=call.headers)


def parameters(request: web.Request, model: type[M]) -> M:
    value = request[PARAMETERS]
    if not isinstance(value, model):
        raise TypeError(
            f"the operation declares {type(value).__name__}, the handler reads {model.__name__}"
        )
    return value


def header_text(header: str) -> str:
    """Decode a header in UTF-8, or, as RFC 9110 has it of old, in ISO 8859-1."""
    try:
        header.encode()
    except UnicodeEncodeError:
        return header.encode("utf-8", "surrogateescape").decode("latin-1")
    return header
