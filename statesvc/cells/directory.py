"""The directory of cells: a TOML file that maps each carrier to one cell, and says where each cell answers.

It holds no secret: a database is given by the name of the environment variable that holds its address. Every change of it counts its
`epoch` up, so that a proxy can be compared with the directory that it was made from. A carrier that it does not name
belongs to its `default` cell: no webhook is ever without a place to go.
"""

import fcntl
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

CELL_NAME: Final = r"^[a-z][a-z0-9-]{0,30}$"
_HEAD: Final = "# The directory of cells; `statesvc cell add` and `statesvc cell assign` write it anew, without comments of yours.\n"


class DirectoryError(ValueError):
    """The file is not there, is no TOML, or breaks the rules; the message says where and what to do."""


def _plain_address(text: str) -> str:
    """Check an address of the form `http://host:port`; raises ValueError."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme != "http" or not parts.hostname or port is None:
        raise ValueError("must be http://host:port: roles speak plain HTTP, TLS ends at the proxy")
    if parts.username is not None or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("must be http://host:port and nothing more")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if not all(character.isalnum() or character in ".-_:[]" for character in host):
        raise ValueError("has characters in its host that no host has")
    return f"http://{host}:{port}"


def _foreign_variable(name: str) -> str:
    if name.startswith("STATESVC_"):
        raise ValueError(
            "must not begin with STATESVC_: such names are settings, and one that is not known is refused"
        )
    return name


Address = Annotated[str, AfterValidator(_plain_address)]
CellName = Annotated[str, Field(pattern=CELL_NAME)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Cell(_Strict):
    """One installation. `urls`: of its roles `api`, or of the port that `up` serves; several are tried in their order.

    `database`: the environment variable with the address of its database, for the commands that need it.
    """

    urls: Annotated[tuple[Address, ...], Field(min_length=1)]
    database: Annotated[
        str | None,
        Field(pattern=r"^[A-Z][A-Z0-9_]*$"),
        AfterValidator(lambda name: name and _foreign_variable(name)),
    ] = None


class CellDirectory(_Strict):
    """All cells, and whose carrier is where."""

    epoch: Annotated[int, Field(ge=1)]
    default: CellName
    cells: Annotated[dict[CellName, Cell], Field(min_length=1)]
    carriers: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")], CellName] = {}

    @model_validator(mode="after")
    def _names_cells_that_exist(self) -> Self:
        missing = sorted({self.default, *self.carriers.values()} - set(self.cells))
        if missing:
            raise ValueError(f"names cells that it does not have: {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _no_address_is_two_cells(self) -> Self:
        owners: dict[str, str] = {}
        for name, cell in self.cells.items():
            for place in (*cell.urls, *([cell.database] if cell.database else [])):
                if owners.setdefault(place, name) != name:
                    raise ValueError(
                        f"cells {owners[place]} and {name} have the same address: {place}"
                    )
        return self

    def cell_of(self, carrier_id: str) -> str:
        """Return the name of the carrier's cell."""
        return self.carriers.get(carrier_id, self.default)

    def carriers_of(self, name: str) -> list[str]:
        """Return the carriers that the directory names for this cell."""
        return sorted(carrier for carrier, cell in self.carriers.items() if cell == name)

    def adding(self, name: str, members: Mapping[str, object]) -> "CellDirectory":
        """Return the directory with one more cell. Raises DirectoryError."""
        if name in self.cells:
            raise DirectoryError(f"there is a cell {name} already")
        return self._changed(cells={**self.model_dump()["cells"], name: members})

    def moving(self, name: str, members: Mapping[str, object]) -> "CellDirectory":
        """Return the directory with these members of the cell instead. Raises DirectoryError."""
        cells = self.model_dump()["cells"]
        if name not in cells:
            raise DirectoryError(f"there is no cell {name}; there are: {', '.join(cells)}")
        return self._changed(cells={**cells, name: {**cells[name], **members}})

    def assigning(self, carrier_id: str, name: str) -> "CellDirectory":
        """Return the directory with the carrier in this cell. Raises DirectoryError."""
        if name not in self.cells:
            raise DirectoryError(f"there is no cell {name}; there are: {', '.join(self.cells)}")
        return self._changed(carriers={**self.carriers, carrier_id: name})

    def _changed(self, **members: object) -> "CellDirectory":
        return checked_directory(
            {**self.model_dump(), **members, "epoch": self.epoch + 1}, "the changed directory"
        )


def checked_directory(members: Mapping[str, object], place: str) -> CellDirectory:
    """Build the directory of these members; `place` names it in errors. Raises DirectoryError."""
    try:
        return CellDirectory.model_validate(members)
    except ValidationError as error:
        flaws = (
            f"{'.'.join(map(str, flaw['loc'])) or 'the directory'}: {flaw['msg'].removeprefix('Value error, ')}"
            for flaw in error.errors(include_input=False, include_url=False)
        )
        raise DirectoryError(f"{place}: {'; '.join(flaws)}") from None


def parse_directory(text: str, place: str) -> CellDirectory:
    """Parse a directory; `place` names it in errors. Raises DirectoryError."""
    try:
        return checked_directory(tomllib.loads(text), place)
    except tomllib.TOMLDecodeError as error:
        raise DirectoryError(f"{place} is no TOML: {error}") from None


def read_directory(file: Path) -> CellDirectory:
    """Read the directory in this file. Raises DirectoryError."""
    try:
        return parse_directory(file.read_text("utf-8"), str(file))
    except UnicodeDecodeError:
        raise DirectoryError(f"{file} is no text in UTF-8") from None
    except OSError as error:
        raise DirectoryError(f"{file} cannot be read: {error.strerror}") from None


def change_directory(
    file: Path, change: Callable[[CellDirectory | None], CellDirectory]
) -> CellDirectory:
    """Write what `change` makes of the directory (None: there is no file yet). One change at a time, whole or not at all."""
    with _locked(file):
        changed = change(read_directory(file) if file.exists() else None)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            draft.write_text(directory_text(changed), "utf-8")
            draft.replace(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise DirectoryError(f"{file} cannot be written: {error.strerror}") from None
    return changed


def directory_text(directory: CellDirectory) -> str:
    """Format the directory as a file."""
    lines = [_HEAD + f"epoch = {directory.epoch}", f"default = {_quoted(directory.default)}"]
    for name, cell in directory.cells.items():
        lines += ["", f"[cells.{name}]", f"urls = {_array(cell.urls)}"]
        lines += [f"database = {_quoted(cell.database)}"] if cell.database else []
    lines += [
        "",
        "[carriers]",
        *(f"{carrier} = {_quoted(name)}" for carrier, name in sorted(directory.carriers.items())),
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    try:
        with file.with_name(f".{file.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise DirectoryError(f"{file} cannot be locked for a change: {error.strerror}") from None


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def _array(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"
