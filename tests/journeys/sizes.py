"""What an installation takes on the disk: `python -m tests.journeys.sizes WHEEL [--write]`.

Reaches a package registry.

The wheel alone by pip, uv and pipx (`uv` and `pipx` from the PATH), then with each extra by pip,
each in an empty environment. Counted are the bytes of the files, with the bytecode that pip and
pipx compile and uv does not, without the installer itself.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "install.md"
CONSTRAINTS: Final = ROOT / "constraints.txt"
BASE_MB_MAX: Final = 120
INSTALLERS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
CELL: Final = re.compile(r"^\| `(?P<extra>\w+)` \| (?P<megabytes>[^|]+) \|", re.MULTILINE)


def by_pip(asked: str, folder: Path, python: str) -> None:
    run(python, "-m", "venv", folder)
    run(
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-c",
        CONSTRAINTS,
        asked,
    )


def by_uv(asked: str, folder: Path, python: str) -> None:
    run("uv", "venv", "--quiet", "--python", python, folder)
    run(
        "uv",
        "pip",
        "install",
        "--quiet",
        "--link-mode",
        "copy",
        "--python",
        folder / "bin" / "python",
        "-c",
        CONSTRAINTS,
        asked,
    )


def by_pipx(asked: str, folder: Path, python: str) -> None:
    homes = {"PIPX_HOME": str(folder), "PIPX_BIN_DIR": str(folder / "links")}
    run(
        "pipx",
        "install",
        "--quiet",
        "--python",
        python,
        f"--pip-args=-c {CONSTRAINTS}",
        asked,
        **homes,
    )


WAYS: Final[dict[str, Callable[[str, Path, str], None]]] = {
    "pip": by_pip,
    "uv": by_uv,
    "pipx": by_pipx,
}


def run(*command: str | Path, **environment: str) -> None:
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})


def megabytes(way: str, asked: str, python: str) -> float:
    """Return what an installation takes, in MB of a million bytes."""
    with TemporaryDirectory(prefix="sizes-") as name:
        WAYS[way](asked, Path(name, "environment"), python)
        return sum(path.stat().st_size for path in _files(Path(name))) / 1e6


def _files(folder: Path) -> Iterator[Path]:
    for packages in folder.rglob("site-packages"):
        for path in packages.rglob("*"):
            if path.is_file() and not path.relative_to(packages).parts[0].startswith(INSTALLERS):
                yield path


def written(page: str, sizes: dict[str, float]) -> str:
    """Return the page with what each extra adds."""
    return CELL.sub(
        lambda row: (
            f"| `{row['extra']}` | {sizes[row['extra']]:.0f} |" if row["extra"] in sizes else row[0]
        ),
        page,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--write", action="store_true", help="write the sizes into docs/install.md")
    options = parser.parse_args()
    wheel = options.wheel.resolve()
    alone = {way: megabytes(way, str(wheel), options.python) for way in WAYS}
    for way, size in alone.items():
        sys.stdout.write(f"{way}: {size:.1f} MB\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    added = {}
    for extra in sorted(set(project["optional-dependencies"]) - {"dev"}):
        added[extra] = megabytes("pip", f"{wheel}[{extra}]", options.python) - alone["pip"]
        sys.stdout.write(f"[{extra}]: + {added[extra]:.1f} MB\n")
        sys.stdout.flush()
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), added), "utf-8")
    return int(max(alone.values()) > BASE_MB_MAX)


if __name__ == "__main__":
    sys.exit(main())
