"""An id may be shortened to as many of its first characters as are unique."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from statesvc.cli.command_error import CommandError

T = TypeVar("T")
_NAMED: Final = 5


def one_beginning_with(
    prefix: str, listed: Iterable[T], *, name: Callable[[T], str], what: str, where: str = ""
) -> T:
    """Return the item with this name or prefix. Raises CommandError for no match, or several.

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
