"""The faces of an operation besides HTTP: its commands, forms and pages, each declared beside it.

Texts of fields are said once, in the models of parameters and body: they are the document's, the
command's help and the form's hints. What the answer looks like is the operation's `view`
(`statesvc.http.views`), or that of one face, where it says another thing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from statesvc.http.views import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFace:
    """Annotation of a field: how people are asked for it.

    `label`, `hint`: on a form; `flag`, `metavar`, `help`: of a command.

    `hint` and `help` only where the field's description does not do for people. `null`: the word
    for null on the command line; `const`: the flag takes no value and stands for this one.
    """

    label: str = ""
    hint: str = ""
    flag: str = ""
    metavar: str = ""
    help: str = ""
    null: str = ""
    const: str = ""


@dataclass(frozen=True, slots=True)
class Also:
    """A further call of a command: `operation` answers a list, shown below and printed as `member`.

    It takes the command's fields that it has, and `given`, members of the first answer: without one
    of them it is not made.
    """

    operation: str
    member: str
    given: tuple[str, ...] = ()
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that makes this one call.

    `name`: its words after `statesvc`; `summary`: where the operation's own says another thing.

    `arguments`: fields that take no flag, in their order; the default is those of the path.
    `fields`: the others that it takes; the default is all that have a plain value; a member of a
    member is `guard.messages`. `required`: also these; `defaults`: sent where they are left out.
    `fixed`: what it sets itself; `preset`: likewise, unless `--all` is given. `preview`: the
    operation that shows what it would do: without `--yes` the command shows that alone. `renamed`:
    members of `--json` by their names in the answer; `is_rows`: of a list the rows alone. A list
    without `cursor` among its `fields` is shown to its end. Of two commands with a name, that with
    an argument runs where it is given.
    """

    name: str
    summary: str = ""
    arguments: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    required: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    preset: Mapping[str, object] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_rows: bool = False
    preview: str = ""
    also: tuple[Also, ...] = ()
    view: Views = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of the console that makes this one call.

    `path`: of its page, with the call's parameters in braces.

    It is shown before what it would do: the view of a dry run where the body has `dry_run`, else
    `would`, drawn from the answer of the operation `preview` where one is named; with `is_filled`
    the form begins with that answer. `fields`: of the body, its members (`meaning.status`), or the
    query. `kept`: fields with the value that the preview answered. `then`: the page that it leads
    to.
    """

    path: str
    title: str
    button: str
    then: str
    would: Views = ()
    preview: str = ""
    is_filled: bool = False
    kept: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict)
    view: Views = ()
    section: str = ""
    is_drastic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """A page of the console that shows what this call answers.

    `fixed`: parameters that it sets itself; `filter`: those that a visitor chooses, with `preset`
    at first. `menu`, `group`: its entry in the left column. `acts`: paths of forms that it leads
    to, the most likely first; `row_acts`: of each row. `runbook`: pages of the runbook. `is_live`:
    it updates itself. `personal`: what a call with `include=personal` shows, to who gives a reason.
    """

    path: str
    title: str
    menu: str = ""
    group: Literal["Now", "Parcels", "Operators"] = "Now"
    section: str = ""
    fixed: Mapping[str, object] = field(default_factory=dict)
    filter: tuple[str, ...] = ()
    preset: Mapping[str, str] = field(default_factory=dict)
    acts: tuple[str, ...] = ()
    row_acts: tuple[str, ...] = ()
    runbook: tuple[str, ...] = ()
    view: Views = ()
    is_live: bool = False
    personal: str = ""
