"""An id may be shortened to as many of its first characters as are unique."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from statesvc.cli.command_error import CommandError
from statesvc.cli.presentation import presentation

_SHORTEST: Final = 8

T = TypeVar("T")
_NAMED: Final = 5


def shown_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids as a list shows them: on a terminal, without `-o wide`, as many of their characters as tell them apart."""
    if not sys.stdout.isatty() or presentation().wide:
        return [*ids]
    length = _SHORTEST
    while len({each[:length] for each in ids}) < len(set(ids)):
        length += 1
    return [each[:length] for each in ids]


def one_beginning_with(
    prefix: str, listed: Iterable[T], *, name: Callable[[T], str], what: str, where: str = ""
) -> T:
    """Return the one whose name begins so, or is exactly this. Raises CommandError where there is none, or several.

    `where`: the command that lists them, if it is not `statesvc WHATs list`.
    """
    found = [one for one in listed if name(one).startswith(prefix)]
    match [one for one in found if name(one) == prefix] or found:
        case [one]:
            return one
        case []:
            raise CommandError(
                f"there is no {what} {prefix}: `{where or f'statesvc {what}s list'}` names them"
            )
        case several:
            names = ", ".join(name(one) for one in several[:_NAMED]) + (
                ", ..." if len(several) > _NAMED else ""
            )
            raise CommandError(
                f"{len(several)} {what}s begin with {prefix}: {names}; name more of it", exit_code=2
            )
