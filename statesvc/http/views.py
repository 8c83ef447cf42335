"""Views: what an answer looks like to people, declared once beside its operation.

The command line prints a view and the console renders it, in the same words; JSON ignores it.
`draw` makes blocks of a view and an answer, which both then lay out.

Texts are members of the answer (`"failing.since"`), sentences with members in braces
(`"{discarded:dead letter} discarded"`: a noun as format counts it), or functions of the answer.
Functions live in modules that load neither the database driver nor a carrier, because a command
that calls a remote service imports them.
"""

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

# Members of an answer, or of one row of its list, as JSON has them.
Answer: TypeAlias = Mapping[str, Any]
Text: TypeAlias = str | Callable[[Answer], Any]
_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, [], {})


class Denied(str):
    """A sentence that says why something cannot be done, or was not: the command ends with 1."""

    __slots__ = ()


class Column:
    """One column of a table, or one row of facts.

    `link`: page of the console; `wide`: for `-o wide` and large screens alone.
    """

    __slots__ = ("link", "title", "value", "wide")

    def __init__(
        self, value: Text, title: str = "", *, link: Text = "", wide: bool = False
    ) -> None:
        self.value = value
        self.title = title or _title(value)
        self.link = link
        self.wide = wide


class _Part:
    """Part of a view with columns as arguments."""

    __slots__ = ("columns", "empty", "of", "title")

    def __init__(
        self, *columns: Text | Column, of: str = "", title: str = "", empty: str = ""
    ) -> None:
        self.columns = tuple(
            column if isinstance(column, Column) else Column(column) for column in columns
        )
        self.of = of
        self.title = title
        self.empty = empty


class Table(_Part):
    """The rows of a list: `items`, or the member `of`.

    Without columns: all members. `empty`: sentence where there are no rows.
    """


class Details(_Part):
    """The members of one object: the answer, or its member `of`; empty ones are left out.

    Without columns: all members.
    """


class Sentences:
    """Sentences about the answer.

    A sentence is left out if all its members are empty or 0; `refusal`: if every sentence is
    left out. `when`: the member that must be present.
    """

    __slots__ = ("refusal", "texts", "when")

    def __init__(self, *texts: Text, refusal: str = "", when: str = "") -> None:
        self.texts = texts
        self.refusal = refusal
        self.when = when


class Excerpt:
    """A text with its lines as they are."""

    __slots__ = ("title", "value")

    def __init__(self, value: Text, title: str = "") -> None:
        self.value = value
        self.title = title


View: TypeAlias = Table | Details | Sentences | Excerpt
Views: TypeAlias = View | tuple[View, ...]


class Cell(NamedTuple):
    """A value and the page that it leads to. None: no value."""

    value: str | float | datetime | None
    link: str = ""


class Line(NamedTuple):
    """A sentence, as drawn."""

    text: str
    is_refusal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table, as drawn. `wide`: headings of the columns that are not always shown."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    wide: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Details, as drawn."""

    title: str
    facts: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """An excerpt, as drawn."""

    title: str
    lines: str


Block: TypeAlias = Line | Grid | Listing | Passage


# JSON
def draw(view: Views, answer: Any, stated: Answer | None = None) -> list[Block]:  # noqa: ANN401
    """Return the answer as blocks. `stated`: the caller's members; sentences may name them, too."""
    members = answer if isinstance(answer, dict) else {}
    given = {name: value for name, value in (stated or {}).items() if value not in (None, [])}
    parts = view if isinstance(view, tuple) else (view,)
    if not parts:
        parts = (Table(),) if "items" in members else (Details(),)
    return [
        block
        for part in parts
        for block in (
            _lines(part, {**members, **given})
            if isinstance(part, Sentences)
            else (
                _passage(part, members)
                if isinstance(part, Excerpt)
                else (
                    _grid(part, _rows(member_of(members, part.of or "items")))
                    if isinstance(part, Table)
                    else _facts(part, member_of(members, part.of) if part.of else members)
                )
            )
        )
    ]


def is_refused(blocks: Iterable[Block]) -> bool:
    """Return whether a sentence says that something was not done."""
    return any(isinstance(block, Line) and block.is_refusal for block in blocks)


def _lines(part: Sentences, answer: Answer) -> Iterator[Line]:
    if part.when and member_of(answer, part.when) in _EMPTY:
        return
    texts: list[str] = []
    for text in part.texts:
        said = _value(text, answer)
        texts += [said] if isinstance(said, str) else said or ()
    yield from (Line(text, isinstance(text, Denied)) for text in texts)
    if not texts and part.refusal:
        yield Line(part.refusal, is_refusal=True)


def _passage(part: Excerpt, answer: Answer) -> Iterator[Passage]:
    text = _value(part.value, answer)
    if text is not None:
        yield Passage(title=part.title, lines=str(text))


def _grid(part: Table, rows: Sequence[Answer]) -> Iterator[Block]:
    if not rows:
        if part.empty:
            yield Line(part.empty)
        return
    columns = part.columns or [
        Column(name) for name in rows[0] if any(row.get(name) not in (None, "") for row in rows)
    ]
    yield Grid(
        title=part.title,
        headings=[column.title for column in columns],
        rows=[[_cell(column, row) for column in columns] for row in rows],
        wide=frozenset(column.title for column in columns if column.wide),
    )


def _rows(listed: Any) -> Sequence[Answer]:  # noqa: ANN401 - JSON
    """Return the rows of a list; those of an object have their names in it as `name`."""
    if isinstance(listed, dict):
        return [{"name": name, **row} for name, row in sorted(listed.items())]
    return listed or []


def _facts(part: Details, members: Answer | None) -> Iterator[Block]:
    if not members:
        return
    lists = {} if part.columns else {name: rows for name, rows in members.items() if _is_rows(rows)}
    columns = part.columns or [Column(name) for name in members if name not in lists]
    facts = [(column.title, _cell(column, members)) for column in columns]
    yield Listing(title=part.title, facts=[fact for fact in facts if fact[1].value is not None])
    for name, rows in lists.items():
        yield from _grid(Table(title=_title(name)), rows)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _cell(column: Column, row: Answer) -> Cell:
    value = _plain(_value(column.value, row))
    if value is None or not column.link:
        return Cell(value)
    if callable(column.link):
        return Cell(value, column.link(row) or "")
    names = _names(column.link)
    if any(member_of(row, name) is None for name in names):
        return Cell(value)
    parts = {name: path_segment(member_of(row, name)) for name in names}
    return Cell(value, _WORDS.vformat(column.link, (), parts))


def _plain(value: Any) -> str | float | datetime | None:  # noqa: ANN401 - JSON
    """Return an answer's value as a cell shows it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return (_time(value) if _is_time(value) else value) or None
        case int() | float() | None:
            return value
        case list():
            return ", ".join(_word(each) for each in value) or None
        case dict():
            given = ((name, each) for name, each in value.items() if each not in (None, ""))
            return ", ".join(f"{name} {_word(each)}" for name, each in given) or None
        case _:
            return str(value)


def _word(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a value as a text."""
    match plain := _plain(value):
        case datetime():
            return plain.isoformat(" ", "seconds").replace("+00:00", "Z")
        case float():
            return f"{plain:g}"
        case _:
            return "" if plain is None else str(plain)


def _is_time(text: str) -> bool:
    return len(text) > 18 and text[4:5] == text[7:8] == "-" and text[10:11] == "T"


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _value(text: Text, answer: Answer) -> Any:  # noqa: ANN401 - JSON
    if callable(text):
        return text(answer)
    if "{" not in text and " " not in text:
        return member_of(answer, text)
    return sentence(text, answer)


def sentence(text: str, answer: Answer) -> str | None:
    """Fill the members in; None where it names some and all are empty."""
    names = _names(text)
    if names and all(member_of(answer, name) in _EMPTY for name in names):
        return None
    return _WORDS.vformat(text, (), answer)


def counted(count: int, noun: str) -> str:
    """Return `1 event`, `2,000 events`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _names(text: str) -> list[str]:
    return [name for _, name, _, _ in _WORDS.parse(text) if name]


def path_segment(value: object) -> str:
    """Quote a value for a path.

    Clients take `..` for a step up: a hyphen, which no tracking number counts, prevents that.
    """
    text = str(value)
    return f"{text}-" if text in {".", ".."} else quote(text, safe="")


def member_names(text: str) -> set[str]:
    """Return the members that a text names in braces."""
    return set(_names(text))


def member_of(answer: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a member, or a member's member: `failing.since`; None where it is not there."""
    for part in name.split("."):
        answer = answer.get(part) if isinstance(answer, Mapping) else None
    return answer


def _title(value: Text) -> str:
    """Return the words of a member's name: `Carrier` of `carrier_id`, `Placed` of `placed_at`."""
    if callable(value) or "{" in value:
        return ""
    name = value.rpartition(".")[2]
    return name.removesuffix("_id").removesuffix("_at").replace("_", " ").capitalize()


class _Words(string.Formatter):
    """Formats members; a format that is a noun counts it."""

    def get_field(self, field_name: str, _args: Sequence[Any], kwargs: Answer) -> tuple[Any, str]:
        return kwargs.get(field_name, member_of(kwargs, field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - JSON
        if format_spec[:1].isalpha() and len(format_spec) > 1:
            return counted(value or 0, format_spec)
        return format(value, format_spec) if format_spec and value is not None else _word(value)


_WORDS: Final = _Words()


def view_of(listed: Sequence[Mapping[str, Any]]) -> tuple[View, ...]:
    """Return the view that the table has; its functions are loaded."""
    return tuple(_part(part) for part in listed)


def _part(listed: Mapping[str, Any]) -> View:
    given = {
        name: value for name, value in listed.items() if name not in {"is", "columns", "texts"}
    }
    if listed["is"] == "Sentences":
        return Sentences(*(_text(text) for text in listed["texts"]), **given)
    if listed["is"] == "Excerpt":
        return Excerpt(_text(given["value"]), listed.get("title", ""))
    columns = [
        Column(**{name: _text(value) for name, value in column.items()})
        for column in listed.get("columns", ())
    ]
    return (Table if listed["is"] == "Table" else Details)(*columns, **given)


def _text(value: Any) -> Any:  # noqa: ANN401 - whatever a part has
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    module, _, name = value[1:].partition(":")
    return getattr(import_module(module), name)
