"""An id may be shortened to as many of its first characters as are unique."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from statesvc.cli.command_error import CommandError

T = TypeVar("T")


def one_beginning_with(prefix: str, listed: Iterable[T], *, name: Callable[[T], str], what: str) -> T:
    """Return the one whose name begins so, or is exactly this. Raises CommandError where there is none, or several."""
    found = [one for one in listed if name(one).startswith(prefix)]
    match [one for one in found if name(one) == prefix] or found:
        case [one]:
            return one
        case []:
            raise CommandError(f"there is no {what} {prefix}: `statesvc {what}s list` names them")
        case several:
            raise CommandError(f"{len(several)} {what}s begin with {prefix}: name more of it", exit_code=2)
