"""Table of the API's calls for the command line, as a file:
`python -m tests.operation_table` writes it anew.

A test compares the two.

A command that calls a service from afar loads neither the database driver nor the carriers, which
the operations themselves do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import BaseModel

from statesvc.addons.console.operation_forms import plain_annotation
from statesvc.http.call import WHY_HEADER
from statesvc.http.faces import Command, FieldFace
from statesvc.http.operation import Operation, Route
from statesvc.http.removed_fields import REMOVED
from statesvc.http.views import Column, Views
from tests.openapi_document import calls

FILE: Final = Path(__file__).parents[1] / "statesvc" / "cli" / "operation_table.json"
_SHAPES: Final = {"date-time": "time", "uuid": "uuid"}
_COMMAND: Final = asdict(Command(name=""))
_PLAIN: Final = frozenset({"string", "integer", "number", "boolean"})


_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, [], {})


def listed_views(view: Views) -> list[dict[str, Any]]:
    """Return a view as the command line's table of operations has it."""
    parts = view if isinstance(view, tuple) else (view,)
    return [_listed(part) for part in parts]


def _listed(part: object) -> dict[str, Any]:
    slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
    members = {name: _listed_value(getattr(part, name)) for name in sorted(slots)}
    kind = {} if isinstance(part, Column) else {"is": type(part).__name__}
    return kind | {name: value for name, value in members.items() if value not in _EMPTY}


def _listed_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_listed_value(each) for each in value]
    if isinstance(value, Column):
        return _listed(value)
    return f"@{value.__module__}:{value.__name__}" if callable(value) else value


def operation_table() -> dict[str, Any]:
    """Return by operation where it is, and what it takes."""
    return {
        route.operation.operation_id: _described(route)
        for route in calls()
        if route.path.startswith("/v1/") and not route.path.startswith("/v1/webhooks/")
    }


def _described(route: Route) -> dict[str, Any]:
    operation: Operation[Any] = route.operation
    taken = {name for command in operation.commands for name in command.fields or ()}
    fields = {
        name: _without_defaults({"place": place, **shown})
        for model, default_place in ((operation.parameters, "query"), (operation.request, "body"))
        if model is not None
        for name, shown in _fields(model)
        if "." not in name or name in taken
        for place in [
            "path" if f"{{{name}}}" in route.path and default_place == "query" else default_place
        ]
    }
    described = {
        "where": f"{route.method} {route.path}",
        "summary": operation.summary,
        "module": None if operation.run is None else operation.run.__module__,
        "seconds": operation.deadline_seconds,
        "takes_why": WHY_HEADER in operation.request_headers,
        "fields": fields,
        "parts": None if operation.parts is None else _without_defaults(asdict(operation.parts)),
        "view": listed_views(operation.view),
        "commands": [
            {
                **{
                    name: value
                    for name, value in asdict(replace(command, view=(), also=())).items()
                    if value != _COMMAND[name]
                },
                **_without_defaults(
                    {
                        "also": [_without_defaults(asdict(also)) for also in command.also],
                        "view": listed_views(command.view),
                    }
                ),
            }
            for command in operation.commands
        ],
    }
    return _without_defaults(described)


def _fields(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    for name, field in model.model_fields.items():
        alias = field.alias or name
        asked = next((each for each in field.metadata if isinstance(each, FieldFace)), FieldFace())
        described = _plain(schema["properties"][alias], definitions)
        inner = plain_annotation(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{before}{alias}.")
        yield (
            before + alias,
            {
                **_kind(described),
                "help": asked.help or schema["properties"][alias].get("description", ""),
                "required": field.is_required() and not before,
                "flag": asked.flag,
                "metavar": asked.metavar,
                "null": asked.null,
                "const": asked.const,
                "removed": REMOVED.get(name, "") if field.deprecated else "",
            },
        )


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without null."""
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    variants = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return _plain(variants[0], definitions) if variants else schema


def _kind(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return {
            "many": True,
            "type": schema.get("items", {}).get("type", "string"),
            "choices": schema.get("items", {}).get("enum"),
        }
    if (shape := _SHAPES.get(schema.get("format", ""))) is not None:
        return {"type": shape}
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    kind = schema.get("type", "string" if choices else "object")
    return {"type": kind if kind in _PLAIN else "object", "choices": choices}


def _without_defaults(described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in described.items()
        if value not in (None, "", False, (), [], {})
    }


def written() -> bytes:
    """Return the file's content."""
    return orjson.dumps(operation_table(), option=orjson.OPT_INDENT_2) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(written())
