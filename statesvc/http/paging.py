"""Pages of lists: `{"items": [...], "next_cursor": null}`.

A cursor is opaque and bound to the filter that it was made under: with another filter it is refused
instead of skipping or repeating items.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

import orjson
from aiohttp import hdrs, web
from pydantic import BaseModel, Field, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, to_jsonable_python

from statesvc.http.closed_model import ClosedModel
from statesvc.http.preferences import RequestWarning
from statesvc.http.problem import Code, Problem

T = TypeVar("T")

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 200
# Above every number that the database gives.
NEWEST: Final = 2**63 - 1
# In a position.
RowNumber = Annotated[int, Field(ge=0, le=NEWEST)]
_VERSION: Final = 1
_BINDING_BYTES: Final = 9
_WARNINGS: Final = TypeAdapter(list[RequestWarning])
_CURSOR_CHARS_MAX: Final = 1024


class PageParameters(ClosedModel):
    """The query parameters of every list; a list's own filters extend it."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX, description="Items per page.")] = LIMIT_DEFAULT
    cursor: Annotated[
        str | None,
        Field(max_length=_CURSOR_CHARS_MAX, description="`next_cursor` of the page before."),
    ] = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page. `next_cursor` is null on the last one."""

    items: list[T]
    next_cursor: str | None

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema with the member that `with_warnings` adds."""
        described = handler(schema)
        warning = handler(_WARNINGS.core_schema)
        handler.resolve_ref_schema(described)["properties"]["warnings"] = warning
        return described


def next_link(
    request: web.Request, answer: object, parameters: type[BaseModel] | None
) -> dict[str, str]:
    """Return the header `Link` to the next page; empty at the last page, or without pages.

    The link is relative to the request, so that it holds behind a proxy which serves the API below
    a path.
    """
    cursor = (
        answer.get("next_cursor")
        if isinstance(answer, dict)
        else getattr(answer, "next_cursor", None)
    )
    if (
        cursor is None
        or parameters is None
        or request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}
    ):
        return {}
    name = "cursor" if "cursor" in parameters.model_fields else "after"
    query = request.rel_url.update_query({name: cursor}).raw_query_string
    return {hdrs.LINK: f'<?{query}>; rel="next"'}


def encode_cursor(position: Sequence[Any], bound_to: Mapping[str, Any]) -> str:
    """Return the cursor after `position` under the filter `bound_to`, both JSON values.

    `position`: the sort key of a page's last item.
    """
    return (
        base64.urlsafe_b64encode(orjson.dumps([_VERSION, _binding(bound_to), *position]))
        .rstrip(b"=")
        .decode()
    )


def decode_cursor(cursor: str, bound_to: Mapping[str, Any], *, fields: int) -> list[Any]:
    """Return the position in a cursor.

    Raises the problem `invalid_cursor` unless it has `fields` fields and was made under this
    filter.
    """
    try:
        decoded = orjson.loads(
            base64.b64decode(
                cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True
            )
        )
    except (UnicodeEncodeError, binascii.Error, orjson.JSONDecodeError):
        decoded = None
    match decoded:
        case [1, str() as binding, *position] if (
            binding == _binding(bound_to)
            and len(position) == fields
            # a forged number would be out of the range of its column: a fault of the database
            and all(type(each) is not int or abs(each) <= NEWEST for each in position)
        ):
            return position
        case _:
            raise Problem(
                Code.INVALID_CURSOR,
                "send `next_cursor` as it was given, with the same filter; or start again without a"
                " cursor",
            )


def before_number(cursor: str | None, bound_to: Mapping[str, Any]) -> int:
    """Return below which number the page begins, of a list by descending numbers.

    Raises the problem `invalid_cursor`.
    """
    return NEWEST if cursor is None else _number(cursor, bound_to)


def after_number(cursor: str | None, bound_to: Mapping[str, Any]) -> int:
    """Return above which number the page begins, of a list by ascending numbers.

    Raises the problem `invalid_cursor`.
    """
    return 0 if cursor is None else _number(cursor, bound_to)


def _number(cursor: str, bound_to: Mapping[str, Any]) -> int:
    (number,) = decode_cursor(cursor, bound_to, fields=1)
    if type(number) is not int or not 0 < number <= NEWEST:
        raise Problem(
            Code.INVALID_CURSOR, "the cursor names nothing that is here; start again without one"
        )
    return number


def encode_position(position: object, bound_to: Mapping[str, Any]) -> str:
    """Return the cursor of a NamedTuple, or a dataclass, of JSON values, times and ids."""
    members = to_jsonable_python(position)
    return encode_cursor(members if isinstance(members, list) else [members], bound_to)


def position_of(cursor: str, position: type[T], bound_to: Mapping[str, Any]) -> T:
    """Decode a cursor of `encode_position`. Raises the problem `invalid_cursor` otherwise."""
    names: Sequence[str] | None = getattr(position, "_fields", None)
    members = decode_cursor(cursor, bound_to, fields=1 if names is None else len(names))
    # a forged cursor holds any values: what is no such position is refused before the database sees
    # it
    try:
        return TypeAdapter(position).validate_json(
            orjson.dumps(members[0] if names is None else members)
        )
    except ValidationError:
        raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given") from None


def _binding(bound_to: Mapping[str, Any]) -> str:
    canonical = orjson.dumps(bound_to, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()[:_BINDING_BYTES]).decode()
