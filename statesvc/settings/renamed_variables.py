"""Settings that got another name: the old one works, with a warning, in two minor releases, the one that renames it and the next.

A row in RENAMES is all that a rename needs: the start, `statesvc doctor`, `init` and its test of docs/upgrade.md go by it.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Final

from statesvc import __version__

RELEASES_WITH_WARNING: Final = 2


class AmbiguousVariableError(ValueError):
    """A setting has two values, one under each of its names. The message shows neither."""


@dataclass(frozen=True, slots=True)
class RenamedVariable:
    """`since`: the minor release that brought the new name, such as `0.2`. A name that ends in `_` begins those of all carriers."""

    old: str
    new: str
    since: str

    @property
    def refused_from(self) -> str:
        major, minor = _minor_release(self.since)
        return f"{major}.{minor + RELEASES_WITH_WARNING}"

    def new_name(self, variable: str) -> str | None:
        """Return the new name of a variable, or None for one that was not renamed here."""
        if self.old.endswith("_") and variable.startswith(self.old):
            return self.new + variable.removeprefix(self.old)
        return self.new if variable == self.old else None


@dataclass(frozen=True, slots=True)
class Renames:
    """All renames, as the release `version` takes them."""

    rows: tuple[RenamedVariable, ...]
    version: str = __version__

    def deprecated(self, variables: Iterable[str]) -> dict[str, str]:
        """Return a sentence for each variable with an old name that still works."""
        return {
            variable: f"{variable} is now {name}: set that. The old name is refused from {row.refused_from} on"
            for variable, name, row in self._found(variables)
            if not self._is_refused(row)
        }

    def refused(self, variables: Iterable[str]) -> dict[str, str]:
        """Return a sentence for each variable with an old name that works no longer."""
        return {
            variable: f"{variable} was renamed to {name} in {row.since}: set that, and remove the old one"
            for variable, name, row in self._found(variables)
            if self._is_refused(row)
        }

    def adopt(self, environment: MutableMapping[str, str]) -> list[str]:
        """Set each new name to what is set under the old one. Return what to warn of. Raises AmbiguousVariableError."""
        warnings = self.deprecated(environment)
        for variable, name, _ in self._found(warnings):
            if environment.setdefault(name, environment[variable]) != environment[variable]:
                raise AmbiguousVariableError(
                    f"{variable} is the old name of {name}, and they have different values: remove {variable}"
                )
        return list(warnings.values())

    def _found(self, variables: Iterable[str]) -> Iterator[tuple[str, str, RenamedVariable]]:
        for variable in sorted(variables):
            for row in self.rows:
                if (name := row.new_name(variable)) is not None:
                    yield variable, name, row

    def _is_refused(self, row: RenamedVariable) -> bool:
        return _minor_release(self.version) >= _minor_release(row.refused_from)


def _minor_release(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


RENAMES: Final = Renames(())
