"""Description of an operation for the command line and the console besides its contract: names, and how its answer is shown.

Texts of fields are said once, in the models of parameters and body: they are the document's, the command's help and the form's hints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Stands among a field's annotations: how people are asked for it. `label`, `hint`: on a form; `flag`, `metavar`: of a command.

    `hint` and `help`, of the command, only where the document's own text does not do for people.
    """

    label: str = ""
    hint: str = ""
    flag: str = ""
    metavar: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that makes this one call. `name`: its words after `statesvc`; `summary`: where the operation's own says another thing.

    `arguments`: fields that take no flag, in their order; None: those of the path. `fields`: the others that it takes; None: all that have
    a plain value. `fixed`: what it sets itself. `columns`: members that a list shows; `done`: a sentence about the answer, with members
    and what was given in braces; without both the whole answer is shown. `preview`: the operation that shows what it would do: without
    `--yes` the command shows that alone.
    """

    name: str
    summary: str = ""
    arguments: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    fixed: Mapping[str, object] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    done: str = ""
    nothing: str = "nothing is there"
    preview: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of the console that makes this one call. `path`: of its page, with the parameters of the call's path in braces.

    `fields`, `fixed`: as a command's. `would`: what it would do, in sentences; none: the operation's description. `then`: the page that it
    leads to, which says `done`.
    """

    path: str
    title: str
    button: str
    then: str
    done: str
    would: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    fixed: Mapping[str, object] = field(default_factory=dict)
    section: str = ""
    is_drastic: bool = False
