"""`python -m tests.schema_check [--write]`: the canonical event's schema only grew; `--write`
writes down what was added.

Compared are the declaration, the committed versions with each other, and with those of the last
landed commit, as far as git knows one (a shallow clone knows its own). A landed version never
changes; a change is a new version. The newest equals the declaration; each is its predecessor,
grown.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from events.schema.declaration import schema
from tests.schema_growth import breaks

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "events/schema"
COMMAND: Final = "python -m tests.schema_check --write"


def committed() -> dict[int, Any]:
    """Return the versions in their order."""
    found = {
        int(number): json.loads(path.read_text("utf-8"))
        for path in files("events.schema").iterdir()
        if (number := path.name.removesuffix(".json")).isdecimal()
    }
    return dict(sorted(found.items()))


def text_of(version: Mapping[str, Any]) -> str:
    """Format a version as it is committed."""
    return json.dumps(version, indent=1, ensure_ascii=False) + "\n"


def faults(versions: Mapping[int, Any], declared: Mapping[str, Any]) -> list[str]:
    """Return the faults of the versions and the declaration, a line each."""
    if not versions:
        return [f"no version of the schema is committed; `{COMMAND}` writes the first"]
    found = []
    for earlier, later in pairwise(versions):
        found += [
            f"{later}.json against {earlier}.json: {line}"
            for line in breaks(versions[earlier], versions[later])
        ]
    newest = max(versions)
    broken = [
        f"the declaration against {newest}.json: {line}"
        for line in breaks(versions[newest], declared)
    ]
    if not broken and versions[newest] != declared:
        broken = [f"the declaration says more than {newest}.json; `{COMMAND}` writes it down"]
    return found + broken


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """Return what git answers; None where it knows nothing, or is not there."""
    try:
        answer = subprocess.run(
            ["git", "-C", root, *arguments], capture_output=True, check=False, encoding="utf-8"
        )
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None


def base(root: Path = ROOT) -> str | None:
    """Return the commit where this branch left the main one, as far as it is known; None without
    git.
    """
    found = (
        git("merge-base", "HEAD", main, root=root)
        for main in ("origin/HEAD", "origin/main", "main", "HEAD")
    )
    return next((commit.strip() for commit in found if commit), None)


def landed(root: Path = ROOT, commit: str | None = None) -> dict[int, str] | None:
    """Return the versions of `commit` (default: the last landed one) as text; None without git."""
    commit = commit or base(root)
    if commit is None:
        return None
    listed = git("ls-tree", "--name-only", commit, f"{FOLDER}/", root=root) or ""
    numbers = [
        int(path.stem)
        for path in map(Path, listed.splitlines())
        if path.suffix == ".json" and path.stem.isdecimal()
    ]
    return {
        number: git("show", f"{commit}:{FOLDER}/{number}.json", root=root) or ""
        for number in sorted(numbers)
    }


def changed(root: Path = ROOT) -> list[str]:
    """Return versions that are no longer what they were in the last landed commit,
    or in the one before it.
    """
    commit = base(root)
    texts = (
        {} if commit is None else (landed(root, commit) or {}) | (landed(root, f"{commit}^") or {})
    )
    found = []
    for number, text in texts.items():
        path = root / FOLDER / f"{number}.json"
        if not path.is_file() or path.read_text("utf-8") != text:
            found.append(
                f"{path.name} has landed and was changed or removed; restore it: a change of the"
                " schema is a new version"
            )
    return found


def write() -> None:
    """Write the declaration as the newest version: a new one, or the newest again as long
    as that has not landed.
    """
    declared, versions, known = schema(), committed(), landed()
    if versions and versions[max(versions)] == declared:
        return
    kept = max((number for number in versions if known is None or number in known), default=0)
    broken = breaks(versions[kept], declared) if kept else []
    if broken:
        sys.exit("\n".join(broken))
    path = ROOT / FOLDER / f"{kept + 1}.json"
    path.write_text(text_of(declared), "utf-8")
    sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


def main() -> int:
    """Check the schema; return 1 and print what is wrong on standard error."""
    parser = argparse.ArgumentParser(
        description="Check that the schema of the canonical event only grew."
    )
    parser.add_argument(
        "--write", action="store_true", help="write down what was added to the declaration"
    )
    if parser.parse_args().write:
        write()
    found = faults(committed(), schema()) + changed()
    sys.stderr.write("".join(f"schema: {line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
