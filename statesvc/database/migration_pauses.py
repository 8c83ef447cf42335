"""The statements of a pending migration that would block the service: they rewrite or read a table, or build an index, under a lock.

By their text alone, so rather one too many. Tables that the pending migrations make themselves are empty, and none of these.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statesvc.database.migration_files import Migration
from statesvc.database.statements import StatementError, split_statements

_SHOWN_CHARS: Final = 100
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r"'(?:[^']|'')*'")
_CREATED: Final = re.compile(
    r"^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([\w.]+)", re.IGNORECASE
)
_ALTERED: Final = re.compile(
    r"^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?P<table>[\w.]+) (?P<actions>.*)$", re.IGNORECASE
)
_VOLATILE: Final = (
    r"DEFAULT \(?(?:[\w.]*(?:random|uuid|nextval|clock_timestamp|timeofday)\w*|statesvc\.\w+) ?\("
)

_STATEMENTS: Final = (
    (
        r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY).* ON (?:ONLY )?([\w.]+)",
        "nobody writes while it is built: CREATE INDEX CONCURRENTLY",
    ),
    (
        r"DROP INDEX (?!CONCURRENTLY)([\w.]+)?",
        "waits for every reader and keeps later ones waiting: DROP INDEX CONCURRENTLY",
    ),
    (
        r"REINDEX (?!.*CONCURRENTLY)()",
        "nobody writes the table meanwhile: REINDEX ... CONCURRENTLY",
    ),
    (
        r"(?:CLUSTER|VACUUM FULL|REFRESH MATERIALIZED VIEW (?!CONCURRENTLY))()",
        "nobody reads the table while it is written anew",
    ),
    (
        r"(?:UPDATE|DELETE FROM) (?:ONLY )?([\w.]+)",
        "all rows in one transaction: in portions, by a role or a command",
    ),
    (r"LOCK (?:TABLE )?([\w.]+)", "a lock for as long as the migration takes"),
    (
        r"DROP TABLE (?:IF EXISTS )?([\w.]+)",
        "processes of the release before still use it: one release later",
    ),
    (r"DO ()", "what a DO block does is not seen"),
)
_ACTIONS: Final = (
    (
        r"ALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE",
        "writes the table anew: a new column, filled in portions",
    ),
    (
        rf"ADD (?:COLUMN )?.*{_VOLATILE}",
        "writes the table anew, a value for each row: add it without, then SET DEFAULT",
    ),
    (
        r"ADD (?:COLUMN )?.*(?:GENERATED|SERIAL)",
        "writes the table anew: a plain column, filled in portions",
    ),
    (
        r"ALTER (?:COLUMN )?\w+ SET NOT NULL",
        "reads the whole table: first CHECK (... IS NOT NULL) NOT VALID, and VALIDATE",
    ),
    (
        r"ADD (?:CONSTRAINT \w+ )?(?:CHECK|FOREIGN KEY)(?!.*NOT VALID)",
        "reads the whole table: NOT VALID, then VALIDATE in a later file",
    ),
    (
        r"ADD (?:CONSTRAINT \w+ )?(?:PRIMARY KEY|UNIQUE)(?! USING INDEX)",
        "builds an index under a lock: concurrently, then USING INDEX",
    ),
    (r"ADD (?:CONSTRAINT \w+ )?EXCLUDE", "builds an index under a lock"),
    (r"ADD COLUMN (?!.*DEFAULT).*NOT NULL", "fails where there are rows: with a DEFAULT"),
    (r"SET (?:UNLOGGED|LOGGED|TABLESPACE|ACCESS METHOD)", "writes the table anew"),
    (
        r"ATTACH PARTITION",
        "reads the whole partition: first a CHECK of its bounds, NOT VALID and validated",
    ),
    (
        r"DROP (?:COLUMN )?(?!CONSTRAINT|EXPRESSION)|RENAME",
        "processes of the release before still use it: one release later",
    ),
)


@dataclass(frozen=True, slots=True)
class Pause:
    """A statement that blocks others, or breaks the previous release. `why` says what to write instead."""

    label: str
    statement: str
    why: str


def pauses(migrations: Iterable[Migration]) -> Iterator[Pause]:
    """Yield the pauses of these files, which are pending on a database that is in use, in their order."""
    made: set[str] = set()
    for migration in migrations:
        try:
            statements = [_bare(statement) for statement in split_statements(migration.text)]
        except StatementError as error:
            yield Pause(migration.label, "", f"cannot be looked through: {error}")
            continue
        made.update(
            found[1] for statement in statements if (found := _CREATED.match(statement)) is not None
        )
        for statement in statements:
            yield from (
                Pause(migration.label, statement[:_SHOWN_CHARS], why)
                for table, why in _reasons(statement)
                if table not in made
            )


def _bare(statement: str) -> str:
    return " ".join(_STRING.sub("''", _COMMENT.sub(" ", statement)).split())


def _reasons(statement: str) -> Iterator[tuple[str | None, str]]:
    """Yield the table that waits, and why."""
    for pattern, why in _STATEMENTS:
        found = re.match(pattern, statement, re.IGNORECASE)
        if found is not None:
            yield found[1], why
    altered = _ALTERED.match(statement)
    if altered is None:
        return
    for action in _divided(altered["actions"]):
        for pattern, why in _ACTIONS:
            if re.match(pattern, action, re.IGNORECASE):
                yield altered["table"], why


def _divided(actions: str) -> list[str]:
    """Split at the commas outside of parentheses."""
    found, depth = [""], 0
    for character in actions:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [action.strip() for action in found]
