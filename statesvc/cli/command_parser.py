"""The parser of the command line: help in groups, suggestions, and options in any place."""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from statesvc import __version__
from statesvc.cli.command_table import command_groups
from statesvc.cli.presentation import paint
from statesvc.telemetry.colour import Colour

_ANYWHERE: Final[Mapping[tuple[str, ...], Mapping[str, Any]]] = {
    ("--url",): {
        "metavar": "URL",
        "dest": "service_url",
        "help": "the service to call (or STATESVC_URL)",
    },
    ("--key-file",): {
        "metavar": "FILE",
        "help": "the file with its key (or the key in STATESVC_API_KEY)",
    },
    ("--profile",): {"metavar": "NAME", "help": "both, from profiles.toml"},
    ("--env-file",): {"metavar": "FILE", "help": "a file of settings (`statesvc init` writes one)"},
    ("-o",): {
        "dest": "output",
        "choices": ("wide", "json"),
        "help": "further columns; or one JSON document, as --json",
    },
    ("--ages",): {"action": "store_true", "help": "how long ago, in place of times"},
}
# Those of the options above that are followed by a value.
VALUED: Final = frozenset(
    flag for flags, described in _ANYWHERE.items() if "action" not in described for flag in flags
)
_EXAMPLES: Final = (
    "statesvc up --demo",
    "statesvc status --watch",
    "statesvc shipments find 1Z999AA10123456784",
    "statesvc rollout hold ups --why 'codes look wrong'",
)
_ABOUT: Final = """\
Acknowledges carriers' webhooks, keeps what they say in a log that nobody
can change, and tells subscribers.
"""
_FLAG_WIDTH: Final = 19


def close_matches(word: str, known: Iterable[str]) -> list[str]:
    """Return the likely intended words, two at most."""
    import difflib  # noqa: PLC0415 - few command lines are wrong

    return difflib.get_close_matches(word, list(known), n=2)


class _ActionsInLine(argparse.HelpFormatter):
    """Lists actions without argparse's heading line above them."""

    def _format_action(self, action: argparse.Action) -> str:
        if action.nargs != argparse.PARSER:
            return super()._format_action(action)
        return self._join_parts(
            [
                super(_ActionsInLine, self)._format_action(listed)
                for listed in self._iter_indented_subactions(action)
            ]
        )

    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None,
    ) -> str:
        """Leave options to the list below if they do not fit.

        argparse does not break lines within a group of options or their choices.
        """
        listed = list(actions)
        whole = super()._format_usage(usage, listed, groups, prefix)
        if max(map(len, whole.splitlines())) <= self._width:
            return whole
        needed = [action for action in listed if action.required or not action.option_strings]
        return super()._format_usage(usage, needed, [], prefix).rstrip() + " [OPTION ...]\n\n"


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of one of its actions."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - argparse's own
        # some commands have another --url
        super().__init__(
            **{"conflict_handler": "resolve", "formatter_class": _ActionsInLine, **arguments}
        )
        self.actions: Any = None
        """Action that argparse returned for its subcommands."""

    def take_options_anywhere(self) -> None:
        """Take, behind the command's name too, the options that stand before it."""
        for flags, described in _ANYWHERE.items():
            # one that is not given must not undo what stood before the command
            self.add_argument(
                *flags, **{**described, "help": argparse.SUPPRESS, "default": argparse.SUPPRESS}
            )

    # argparse has no public name for it
    def add_subparsers(self, **arguments: Any) -> Any:  # noqa: ANN401
        """Add subcommands, which help lists before the options.

        Text of a subcommand in the list is in its own help, too.
        """
        self.actions = super().add_subparsers(
            **{"title": "actions", "metavar": "ACTION", "parser_class": ActionParser, **arguments}
        )
        add = self.actions.add_parser
        self.actions.add_parser = lambda name, **given: add(
            name, **{"description": given.get("help"), **given}
        )
        self._action_groups.insert(0, self._action_groups.pop())
        self.epilog = (
            f"`{self.prog} ACTION --help` says more about one; `statesvc` lists the options that"
            " stand anywhere."
        )
        return self.actions

    def error(self, message: str) -> NoReturn:
        """Print argparse's sentence and point to the help. Exits."""
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def refuse(self, options: argparse.Namespace, unknown: Sequence[str]) -> NoReturn:
        """Refuse words that neither this parser nor that of the called action knows. Exits."""
        if self.actions is not None and (called := getattr(options, self.actions.dest)) is not None:
            self.actions.choices[called].refuse(options, unknown)
        word = unknown[0].partition("=")[0]
        if not word.startswith("-"):
            self.error(f"unexpected argument {word!r}")
        shown = (
            flag
            for flag, action in self._option_string_actions.items()
            if flag.startswith("--")
            and (action.help is not argparse.SUPPRESS or (flag,) in _ANYWHERE)
        )
        close = close_matches(word, shown)
        if close:
            self.exit(
                2, f"{self.prog}: unknown option {word}; did you mean {' or '.join(close)}?\n"
            )
        self.error(f"unknown option {word}")

    @property
    def needs_action(self) -> bool:
        """True if the command needs a subcommand."""
        return self.actions is not None and self.actions.required

    # argparse's own
    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        if action is self.actions and value not in (known := list(action.choices or ())):
            self.exit(
                2, f"{self.prog}: unknown command {value!r}{meant(self.prog, value, known)}\n"
            )
        super()._check_value(action, value)


class ActionParser(CommandParser):
    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**arguments)
        self.take_options_anywhere()


def meant(program: str, word: str, known: Iterable[str]) -> str:
    """Return a suggestion as the end of a sentence; `known`: the possible words."""
    suggested = [f"statesvc {name}" for name in _elsewhere(word)]
    suggested = suggested or [f"{program} {name}" for name in close_matches(word, known)]
    if suggested:
        return f"; did you mean {' or '.join(f'`{command}`' for command in suggested)}?"
    return f"; `{program} --help` lists them" if " " in program else f"; `{program}` lists them"


def _elsewhere(action: str) -> list[str]:
    """Return the commands of other groups with an action of this name."""
    # reads the table, which no other command line needs here
    from statesvc.cli.operation_table import declared_names  # noqa: PLC0415

    return sorted(name for name in declared_names() if name.split()[-1] == action)[:2]


class TopParser(CommandParser):
    """The parser of the whole command line; its help shows the commands in groups."""

    def __init__(self) -> None:
        super().__init__(prog="statesvc", allow_abbrev=False)
        self.add_argument("--version", action="version", version=f"statesvc {__version__}")
        for flags, described in _ANYWHERE.items():
            self.add_argument(*flags, **described)
        self.set_defaults(output=None)

    def format_usage(self) -> str:
        return "usage: statesvc COMMAND [ACTION] [OPTION ...]\n"

    def format_help(self) -> str:
        """Return the groups of commands, the options that stand anywhere, and examples."""
        groups = command_groups()
        width = max(len(name) for group in groups.values() for name in group)
        parts = [_ABOUT]
        parts.append(_section("Usage", ["statesvc COMMAND [ACTION] [OPTION ...]"]))
        parts += [
            _section(
                title, [f"{name:<{width}}  {command.summary}" for name, command in commands.items()]
            )
            for title, commands in groups.items()
        ]
        parts.append(_section("Options, anywhere", _options()))
        parts.append(_section("Examples", _EXAMPLES))
        parts.append("`statesvc COMMAND --help` says more about a command.\n")
        return "\n".join(parts)


def _section(title: str, lines: Collection[str]) -> str:
    return "".join([paint(title, Colour.BOLD), "\n", *(f"  {line}\n" for line in lines)])


def _options() -> list[str]:
    listed = []
    for flags, described in _ANYWHERE.items():
        value = described.get("metavar") or "|".join(described.get("choices", ()))
        listed.append(f"{' '.join((*flags, value)).strip():<{_FLAG_WIDTH}} {described['help']}")
    return [*listed, f"{'--version':<{_FLAG_WIDTH}} print the version"]
