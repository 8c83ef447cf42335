"""The files of a release, built from the last commit: `make dist`, or
`python -m deploy.packaging.artefacts [FOLDER]`.

Wheel and source distribution, both clients, the files that install it (`deploy/`), the bill of
materials, and the checksums of these. Two builds of one commit give the same bytes: every time in
them is the commit's, and nothing of the working tree but the commit is read.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import statesvc

ROOT: Final = Path(__file__).parents[2]
# What a user may install, and no tools of ours; `make dist` makes it.
RUNTIME: Final = ROOT / ".venv-runtime"
CHECKSUMS: Final = "SHA256SUMS"
# Tools of the TypeScript client, at the versions of the lock file next to it.
NODE_MODULES: Final = ROOT / "tests" / "node" / "node_modules"
DEPLOYED: Final = ("docker", "grafana", "kubernetes", "patroni", "prometheus", "systemd")
# Files that those of `deploy/` refer to, and what they may be used by.
BESIDE: Final = ("LICENSE", "constraints.txt", "statesvc/database/embedded_roles.sql")

# npm packs files with the modes that they have.
UMASK: Final = 0o022


class BuildError(Exception):
    """A file of the release cannot be built."""


@dataclass(frozen=True, slots=True)
class Build:
    """One build: where the commit is unpacked, where its files go, and the second
    that stands for all times.
    """

    source: Path
    target: Path
    epoch: int

    def run(self, *command: str | Path, folder: Path) -> None:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch)}
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            umask=UMASK,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise BuildError(f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}")


def build_release(target: Path) -> list[Path]:
    """Build all files into an empty folder. Return them, checksums last."""
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="statesvc-release-") as name:
        build = Build(Path(name), target, int(_git("log", "-1", "--format=%ct")))
        _unpack_commit(build.source)
        for folder in (build.source, build.source / "clients" / "python"):
            build.run(sys.executable, "-m", "hatchling", "build", "-d", target, folder=folder)
        _pack_typescript_client(build)
        _pack_installation_files(build)
        _write_bill_of_materials(build)
    return [*_checked(target), _write_checksums(target)]


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def _unpack_commit(folder: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(
        ["tar", "--extract", "--directory", folder], umask=UMASK, input=archive, check=True
    )


def _pack_typescript_client(build: Build) -> None:
    if not NODE_MODULES.joinpath("openapi-typescript").exists():
        raise BuildError("the TypeScript client needs its tools: npm ci --prefix tests/node")
    folder = build.source / "clients" / "typescript"
    folder.joinpath("node_modules").symlink_to(NODE_MODULES)
    build.run("npm", "pack", "--pack-destination", build.target, folder=folder)


def _pack_installation_files(build: Build) -> None:
    """Pack the files that install the service, below one folder, as the pages name the files."""
    folder = f"statesvc-deploy-{statesvc.__version__}"
    packed = build.target / f"{folder}.tar.gz"
    deployed = (f"deploy/{name}" for name in DEPLOYED)
    archive = ("archive", f"--prefix={folder}/", f"--output={packed}", "HEAD", *deployed, *BESIDE)
    _git("-c", f"tar.umask={UMASK:04o}", *archive)


def _write_bill_of_materials(build: Build) -> None:
    """List the packages of the runtime environment, as CycloneDX."""
    if not RUNTIME.exists():
        raise BuildError("the bill of materials needs .venv-runtime: make dist")
    project = build.source / "pyproject.toml"
    # cyclonedx-py reads no version that Hatchling computes
    version = f'version = "{statesvc.__version__}"'
    project.write_text(
        project.read_text("utf-8").replace('dynamic = ["version"]', version), "utf-8"
    )
    program = Path(sys.executable).with_name("cyclonedx-py")
    bill = build.target / f"statesvc-{statesvc.__version__}.cdx.json"
    options = ("--output-reproducible", "--pyproject", project, "--output-file", bill)
    build.run(program, "environment", *options, RUNTIME, folder=build.source)


def _checked(target: Path) -> list[Path]:
    """Return the files, in the order of their names.

    Raises BuildError where one is of another version than the service.
    """
    files = sorted(path for path in target.iterdir() if path.name != CHECKSUMS)
    for path in files:
        if f"-{statesvc.__version__}" not in path.name:
            raise BuildError(f"{path.name} is not of version {statesvc.__version__}")
    return files


def _write_checksums(target: Path) -> Path:
    """Write the input of `sha256sum --check`."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in _checked(target)
    ]
    checksums = target / CHECKSUMS
    checksums.write_text("".join(lines), "ascii")
    return checksums


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=ROOT / "dist", help="emptied first; default: dist"
    )
    target: Path = parser.parse_args().folder.resolve()
    if _git("status", "--porcelain", "--untracked-files=no"):
        sys.stderr.write("what is not committed is left out\n")
    shutil.rmtree(target, ignore_errors=True)
    try:
        build_release(target)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write((target / CHECKSUMS).read_text("ascii"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
