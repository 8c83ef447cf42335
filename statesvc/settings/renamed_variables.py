"""Renamed and removed settings, accepted with a warning in two minor releases.

These are the release with the change and the next. A row in RENAMES is enough: the start, `statesvc
doctor` and `init` read it, and tests hold it to docs/upgrade.md and docs/promises.md.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Final

from statesvc import __version__

RELEASES_WITH_WARNING: Final = 2


class AmbiguousVariableError(ValueError):
    """A setting has two values, under its old and new name. The message shows neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OldVariable:
    """`since`: the minor release that made it old, such as `0.2`."""

    old: str
    since: str

    @property
    def refused_from(self) -> str:
        major, minor = _minor_release(self.since)
        return f"{major}.{minor + RELEASES_WITH_WARNING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedVariable(_OldVariable):
    """A name that ends in `_` begins those of all carriers."""

    new: str

    def new_name(self, variable: str) -> str | None:
        """Return the new name of a variable, or None if it was not renamed here."""
        # a prefix stands for the variables of all carriers
        if self.old.endswith("_") and variable.startswith(self.old):
            return self.new + variable.removeprefix(self.old)
        return self.new if variable == self.old else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedVariable(_OldVariable):
    """A setting without effect. `instead`: a sentence without a full stop."""

    instead: str


@dataclass(frozen=True, slots=True)
class Renames:
    """All renames and removals, as the release `version` takes them."""

    rows: tuple[RenamedVariable, ...]
    removed: tuple[RemovedVariable, ...] = ()
    version: str = __version__

    def deprecated(self, variables: Iterable[str]) -> dict[str, str]:
        """Return a sentence for each old variable that is still accepted."""
        return {
            variable: (
                f"{variable} is now {name}: set that. The old name is refused from"
                f" {row.refused_from} on"
            )
            for variable, name, row in self._found(variables)
            if not self._is_refused(row)
        } | {
            row.old: (
                f"{row.old} has no effect: {row.instead}. It is refused from {row.refused_from} on"
            )
            for row in self.removed
            if row.old in variables and not self._is_refused(row)
        }

    def refused(self, variables: Iterable[str]) -> dict[str, str]:
        """Return a sentence for each old variable that is refused."""
        return {
            variable: (
                f"{variable} was renamed to {name} in {row.since}: set that, and remove the old one"
            )
            for variable, name, row in self._found(variables)
            if self._is_refused(row)
        } | {
            row.old: f"{row.old} was removed in {row.since}: {row.instead}"
            for row in self.removed
            if row.old in variables and self._is_refused(row)
        }

    def adopt(self, environment: MutableMapping[str, str]) -> list[str]:
        """Set each new name to the value of the old.

        Return the warnings. Raises AmbiguousVariableError.
        """
        warnings = self.deprecated(environment)
        for variable, name, _ in self._found(warnings):
            # the same value under both names is how a rollout of two releases looks
            if environment.setdefault(name, environment[variable]) != environment[variable]:
                raise AmbiguousVariableError(
                    f"{variable} is the old name of {name}, and they have different values: remove"
                    f" {variable}"
                )
        return list(warnings.values())

    def _found(self, variables: Iterable[str]) -> Iterator[tuple[str, str, RenamedVariable]]:
        for variable in sorted(variables):
            for row in self.rows:
                if (name := row.new_name(variable)) is not None:
                    yield variable, name, row

    def _is_refused(self, row: _OldVariable) -> bool:
        return _minor_release(self.version) >= _minor_release(row.refused_from)


def _minor_release(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


_OPERATOR_EVENTS: Final = (
    "notices are sent nowhere until a subscription asks for the types operator.*"
    " (docs/operations.md)"
)
RENAMES: Final = Renames(
    (),
    removed=(
        RemovedVariable(
            old="STATESVC_BACKUP_PROVIDER_DAYS",
            since="0.2",
            instead="check in your provider's console how far back it restores (docs/backup.md)",
        ),
        RemovedVariable(
            old="STATESVC_CELLS_FILE",
            since="0.2",
            instead="route to several installations with nginx or Envoy (docs/engines.md)",
        ),
        RemovedVariable(
            old="STATESVC_REPLICA_URL",
            since="0.2",
            instead="run a second `statesvc api` on the standby (docs/high-availability.md)",
        ),
        RemovedVariable(old="STATESVC_OPERATOR_URL", since="0.2", instead=_OPERATOR_EVENTS),
        RemovedVariable(old="STATESVC_OPERATOR_SECRET", since="0.2", instead=_OPERATOR_EVENTS),
    ),
)
