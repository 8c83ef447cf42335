"""What the command line and the console need to know of an operation besides its contract: names, and how its answer is shown.

Texts of fields are said once, in the models of parameters and body: they are the document's, the command's help and the form's hints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Stands among a field's annotations: how people are asked for it. `label`: on a form; `flag`, `metavar`: of a command.

    `help`: of the command, where the document's text speaks of JSON.
    """

    label: str = ""
    flag: str = ""
    metavar: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that makes this one call. `name`: its words after `statesvc`.

    `arguments`: fields that take no flag, in their order; None: those of the path. `columns`: members that a list shows; `done`: a
    sentence about the answer, with its members in braces. Without both, the whole answer is shown. `fixed`: fields that the command
    sets, and does not ask for. `preview`: the operation that shows what it would do; `--yes` does it.
    """

    name: str
    arguments: Sequence[str] | None = None
    columns: Sequence[str] = ()
    done: str = ""
    nothing: str = "nothing is listed"
    fixed: dict[str, object] = field(default_factory=dict)
    preview: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of the console that makes this one call.

    `path`: of its page, with the operation's own parameters in braces; `back`: where it leads afterwards. `done`: as a command's.
    `would`: what it would do, in a sentence; None: the operation's description.
    """

    path: str
    title: str
    button: str
    back: str
    done: str
    would: str | None = None
    section: str = ""
    is_drastic: bool = False
    fixed: dict[str, object] = field(default_factory=dict)
