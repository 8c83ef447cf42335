"""JSON answers. Times come out as RFC 3339 with offset."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel

from statesvc.http.problem import OK


def answer(value: Any, *, status: int = OK, headers: Mapping[str, str] | None = None) -> web.Response:  # noqa: ANN401 - any JSON
    """A value, or a model, as `application/json`."""
    return web.Response(body=orjson.dumps(value, default=_plain), status=status, content_type="application/json", headers=headers)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
