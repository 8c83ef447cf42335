"""Table of the API's calls for the command line: paths, parameters and texts.

`python -m tests.operation_table` writes the table from the operations, so that a command which
calls a remote service need not load them.
"""

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from statesvc.http.call_progress import CallParts
from statesvc.http.faces import Also, Command
from statesvc.http.views import Views, view_of

# An option's value for null.
NULL: Final = object()
_CHOICES_SHOWN: Final = 8
_WHY: Final = "recorded in the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenField:
    """A parameter of a call. `place`: `path`, `query` or `body`."""

    name: str
    place: str
    type: str = "string"
    help: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    many: bool = False
    flag: str = ""
    metavar: str = ""
    null: str = ""
    const: str = ""
    removed: str = ""
    """The effect of a removed field."""

    @property
    def option(self) -> str:
        name = self.name.rpartition(".")[2]
        return self.flag or "--" + name.removesuffix("_id").replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOperation:
    """A call of the API.

    `module`: of the operation, for a command that runs it in its own process.
    """

    operation_id: str
    where: str
    summary: str
    module: str
    seconds: float | None
    takes_why: bool
    """Besides its fields: why it is done, for the log."""
    fields: Mapping[str, TakenField]
    parts: CallParts | None
    view: Views
    commands: tuple[Command, ...]


@cache
def _table() -> Mapping[str, Any]:
    table: dict[str, Any] = json.loads(
        (files("statesvc.cli") / "operation_table.json").read_bytes()
    )
    return table


def operation_named(operation_id: str) -> ListedOperation:
    """Return the operation. Raises KeyError."""
    listed = _table()[operation_id]
    parts = listed.get("parts")
    return ListedOperation(
        operation_id=operation_id,
        where=listed["where"],
        summary=listed["summary"],
        module=listed.get("module", ""),
        seconds=listed.get("seconds"),
        takes_why=listed.get("takes_why", False),
        fields={
            name: TakenField(name=name, **described)
            for name, described in listed.get("fields", {}).items()
        },
        parts=None if parts is None else CallParts(**parts),
        view=view_of(listed.get("view", ())),
        commands=tuple(
            Command(
                **{
                    **command,
                    "view": view_of(command.get("view", ())),
                    "also": tuple(Also(**each) for each in command.get("also", ())),
                }
            )
            for command in listed.get("commands", ())
        ),
    )


def commands_of(group: str) -> Iterator[tuple[ListedOperation, Command]]:
    """Yield the commands with this first word, in the order of the document."""
    for operation_id, listed in _table().items():
        if any(command["name"].split()[0] == group for command in listed.get("commands", ())):
            operation = operation_named(operation_id)
            yield from (
                (operation, command)
                for command in operation.commands
                if command.name.split()[0] == group
            )


def declared_names() -> frozenset[str]:
    return frozenset(
        command["name"] for listed in _table().values() for command in listed.get("commands", ())
    )


def add_fields(
    parser: argparse.ArgumentParser,
    operation_id: str,
    *names: str,
    arguments: Collection[str] = (),
    optional: Collection[str] = (),
    required: Collection[str] = (),
    **words: str,
) -> None:
    """Add the fields of a call as options, those of `arguments` without a flag.

    `required`: also these; `optional`: arguments that may be missing; `words`: other help.
    """
    fields = operation_named(operation_id).fields
    for name in names:
        field = fields[name]
        told = words.get(name) or field.help or (_WHY if name == "why" else "")
        described: dict[str, Any] = {
            "help": argparse.SUPPRESS if field.removed else told.replace("%", "%%")
        }
        if field.type == "boolean":
            word = "store_false" if field.flag.startswith("--no-") else "store_true"
            described |= {"action": word, "default": None}
        elif field.const:
            described |= {"action": "store_const", "const": field.const}
        else:
            described |= {
                "type": _or_null(field),
                "metavar": field.metavar or _metavar(field),
                "choices": field.choices or None,
            }
        if name in arguments:
            described["metavar"] = described.get("metavar") or name.removesuffix("_id")
            count = "*" if field.many else "?" if name in optional or not field.required else None
            parser.add_argument(name, nargs=count, **described)
        else:
            many: dict[str, Any] = {}
            if field.many:
                many = {"action": "extend", "type": _words_of(field), "choices": None}
            is_required = (field.required or name in required) and name not in optional
            parser.add_argument(
                field.option, dest=name, required=is_required, **{**described, **many}
            )


def _instant(text: str) -> str:
    """Return a time as RFC 3339; UTC where no zone is given."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("invalid timestamp; use 2026-11-23T02:00:00Z") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def _id(text: str) -> str:
    """Return an id, or its first characters."""
    wanted = text.strip().lower()
    if not wanted or wanted.strip("0123456789abcdef-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no id: an id has hexadecimal digits")
    return wanted


_TYPES: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": float,
    "time": _instant,
    "uuid": _id,
}


def _or_null(field: TakenField) -> Callable[[str], Any]:
    """Return the type of an option that may have a word for null."""
    parse = _TYPES.get(field.type, str)
    if not field.null:
        return parse

    def parsed(text: str) -> Any:  # noqa: ANN401 - whatever the field takes
        return NULL if text == field.null else parse(text)

    parsed.__name__ = getattr(parse, "__name__", "value")
    return parsed


def _words_of(field: TakenField) -> Callable[[str], list[str]]:
    """Return the type of an option that takes several words, separated by commas."""

    def words(text: str) -> list[str]:
        given = [word.strip() for word in text.split(",") if word.strip()]
        for word in given:
            if field.choices and word not in field.choices:
                raise argparse.ArgumentTypeError(
                    f"cannot be {word!r}: it is one of {', '.join(field.choices)}"
                )
        return given

    return words


def _metavar(field: TakenField) -> str | None:
    """Return a short name where there are many choices, which are no help."""
    return field.name.upper() if len(field.choices) > _CHOICES_SHOWN else None
