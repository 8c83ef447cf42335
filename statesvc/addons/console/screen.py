"""How a page is made: a `Screen` is a row of a table, which the frame serves (`frame.py`).

Its `show` answers the values of a template. Most answer `blocks`, drawn from the views of calls
(`statesvc.http.views`) or `Picture` and `Cards`, and leave the template to `view.html`. A page that
an operation declares (`declared_pages.py`) is a screen, too, and so is one that shows personal data
for a reason. A change is a `FormAction`: a form, its preview, a confirmation.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import web
from markupsafe import Markup

from statesvc.addons.console.web_sessions import WebSession
from statesvc.http.inner_calls import InnerCalls, Json
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import Block, Cell, Grid

HOME: Final = "/console"
# Values of a form: a text for each of its inputs, empty if not filled.
Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageRequest:
    request: web.Request
    session: WebSession
    calls: InnerCalls
    screens: Mapping[str, "Screen"] = field(default_factory=dict)
    why: str = ""
    """The visitor's reason for this action, or for reading personal data."""
    posted: Values = field(default_factory=dict)
    home: str = HOME

    @property
    def include(self) -> str | None:
        """Return the parameter of calls that show personal data."""
        return "personal" if self.why else None

    def at(self, path: str) -> str:
        """Return the address of a page of the console where this visitor has it."""
        return self.home + path.removeprefix(HOME) if path.startswith(HOME) else path

    async def call_api(
        self, name: str, body: Mapping[str, Json] | None = None, /, **given: Json
    ) -> Json:
        """Call the API (`GET /v1/queue`) with the session's key and return its JSON.

        Raises Problem.
        """
        return await self.calls.call(
            self.session.caller, name, given=given, body=body, why=self.why
        )

    async def fetch(
        self, name: str, body: Mapping[str, Json] | None = None, /, *, accept: str, **given: Json
    ) -> bytes:
        """Make a call that answers with a file of the media type `accept`. Raises Problem."""
        fetched = await self.calls.fetch(
            self.session.caller, name, given=given, body=body, why=self.why, accept=accept
        )
        return fetched.content

    def path(self, name: str) -> str:
        return self.request.match_info[name]

    def query(self, name: str) -> str:
        """Return a parameter of the query, or of the form in its place; empty if left out."""
        return self.posted.get(name, self.request.query.get(name, ""))

    @property
    def given(self) -> Mapping[str, str]:
        """Return the parameters of the query, or of the form in its place."""
        return self.posted or self.request.query

    def has(self, scope: Scope) -> bool:
        return self.session.may(scope)

    def is_shown(self, path: str) -> bool:
        """Return whether there is such a screen, and the key may see it."""
        screen = self.screens.get(path)
        return screen is not None and self.session.may(screen.scope)

    def may_change(self, scope: Scope) -> bool:
        """Return whether this session may make changes that need the scope."""
        return self.session.may_change and self.session.may(scope)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect to the path of another page."""

    path: str


class MenuGroup(StrEnum):
    """The parts of the left column."""

    NOW = "Now"
    PARCELS = "Parcels"
    OPERATORS = "Operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A page without changes. `menu`: its name in the left column, if any, in the part `group`.

    `show` answers the template's values, or a file. `is_computed`: it may take as long as the
    API's computations. `personal`: the scope that its masked values take; they come by POST, so
    that no address holds the form's values, with a reason in the field `reason`. That makes no
    change, so a read-only session may have it; the API call that it makes records it.
    """

    path: str
    title: str
    scope: Scope
    show: Callable[[PageRequest], Awaitable[Mapping[str, Any] | Redirect | web.StreamResponse]]
    template: str = "view.html"
    personal: Scope | None = None
    reason: str = "why"
    menu: str | None = None
    group: MenuGroup = MenuGroup.NOW
    section: str = ""
    """The path of the screen with the marked menu entry, if it is another."""
    is_computed: bool = False


class Act(NamedTuple):
    """A button to the form at `path`, for holders of the scope."""

    path: str
    words: str
    scope: Scope
    is_main: bool = False


class Picture(NamedTuple):
    """A block that is a chart. `legend`: the style and the name of each colour; `note`: below."""

    title: str
    picture: Markup
    legend: Sequence[tuple[str, str]] = ()
    note: str = ""


class Card(NamedTuple):
    """A large number. `style` and `note_style`: bad, warn, good, soft or none."""

    name: str
    value: str
    unit: str = ""
    style: str = ""
    about: str = ""
    picture: Markup = Markup()
    note: str = ""
    note_style: str = "soft"


class Cards(NamedTuple):
    """A block of cards."""

    cards: Sequence[Card]


PageBlock: TypeAlias = Block | Picture | Cards | Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A field of a form. With `options` it is a choice; each is a value and its label."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    type: str = "text"
    options: Sequence[tuple[str, str]] = ()
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Preview of an action.

    `hidden`: values for the confirmation to carry; `refusal`: the reason why the action is
    impossible.
    """

    hidden: Values = field(default_factory=dict)
    blocks: Sequence[Block] = ()
    refusal: str | None = None


def changes(what: str, rows: Sequence[tuple[str, object, object]]) -> Iterator[Block]:
    """Return a table of members, with the present and the future value of each."""
    if rows:
        cells = [[Cell(str(cell)) for cell in row] for row in rows]
        yield Grid(title="", headings=(what, "Now", "Then"), rows=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Outcome of an action. `then`: the path to go to."""

    sentence: str
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormAction:
    """An operator action: a form with a reason, a dry run, a confirmation.

    `inputs` are asked for besides the reason; `back` is the target of the form's way out, with
    the path's own names in braces. `is_drastic`: a second press of Enter does not do it by
    mistake. `carry_out` answers the values of `progress.html` if a sentence is not enough: a
    secret that is shown once, or work in parts (`operation_forms.py`).
    """

    path: str
    title: str
    scope: Scope
    back: str
    button: str
    dry_run: Callable[[PageRequest, Values], Awaitable[DryRun]]
    carry_out: Callable[[PageRequest, Values], Awaitable[Done | Mapping[str, Any]]]
    inputs: Callable[[PageRequest], Awaitable[Sequence[Input]]] | None = None
    section: str = ""
    is_drastic: bool = False
