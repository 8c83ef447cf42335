"""Puts `events`, `projections`, `migrations` and the pages of the runbook below `statesvc` in a
wheel: it brings one top-level package.

Hatchling calls it (`pyproject.toml`). The tree and an editable installation stay as they are:
docs/decisions/0022-one-package.md says why.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME: Final = "statesvc"
MOVED: Final = ("events", "projections", "migrations")
# Its pages are data of the package `statesvc.runbook`.
RUNBOOK: Final = Path("docs/runbook")


class WheelHook(BuildHookInterface[Any]):
    """The build hook: hands Hatchling rewritten copies instead of the files of the tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the packages into the wheel.

        `version` is `editable` for `pip install -e`, else `standard`.
        """
        if version == "editable":
            return
        self._copies = TemporaryDirectory(prefix="statesvc-wheel-")
        root, copies = Path(self.root), Path(self._copies.name)
        for path in sorted(self._sources(root)):
            target = _place(path.relative_to(root))
            content = path.read_bytes()
            copy = copies / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(
                rewritten(content.decode(), path.as_posix()).encode()
                if path.suffix == ".py"
                else content
            )
            build_data["force_include"][str(copy)] = target.as_posix()

    # Hatchling's signature
    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the copies, which are no longer needed."""
        if version != "editable":
            self._copies.cleanup()

    def _sources(self, root: Path) -> Iterator[Path]:
        for package in (HOME, *MOVED):
            yield from (
                path
                for path in (root / package).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            )
        yield from (root / RUNBOOK).glob("*.md")


def _place(path: Path) -> Path:
    if path.parent == RUNBOOK:
        return Path(HOME, "runbook", path.name)
    return Path(HOME) / path if path.parts[0] in MOVED else path


def rewritten(source: str, name: str) -> str:
    """Return the module with its imports of the moved packages, and its reads of their
    files, under the new names.

    Raises ValueError where a moved package is named in a way that would break, so that it fails at
    the build and not at its user's.
    """
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    places = sorted(set(_mentions(ast.parse(source, name), name)), reverse=True)
    for line, column in places:
        lines[line - 1] = lines[line - 1][:column] + f"{HOME}.".encode() + lines[line - 1][column:]
    return b"".join(lines).decode()


def _mentions(module: ast.Module, name: str) -> Iterator[tuple[int, int]]:
    """Yield line and column (in bytes, as `ast` counts) of each name that begins with a moved
    package.
    """
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(package), level=0) if _moves(package):
                yield node.lineno, node.col_offset + len("from ")
            case ast.Import(names=imported) if any(_moves(alias.name) for alias in imported):
                raise ValueError(
                    f"{name}:{node.lineno}: write `from ... import ...`: the wheel has this package"
                    f" below {HOME}"
                )
            case ast.Call(
                func=ast.Name(id="files"), args=[ast.Constant(value=str(package)) as argument]
            ) if _moves(package):
                yield argument.lineno, argument.col_offset + len('"')
            case _:
                pass


def _moves(package: str) -> bool:
    return package.partition(".")[0] in MOVED
