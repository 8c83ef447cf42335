"""Checking the files of archived months from outside: whether they are there, and as they were written. Needs no pyarrow."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from statesvc.log.archive.file_names import checkpoint_of, fault_of, index_of
from statesvc.log.archive.month_ledger import LogMonth


def file_faults(folder: Path, months: Sequence[LogMonth]) -> Iterator[tuple[str, str]]:
    """Each file that is not as the ledger has it, and why. Reads all of them whole."""
    for month in months:
        path = folder / (month.file_name or "")
        for file, sha256 in ((path, month.sha256), (index_of(path), month.index_sha256)):
            if (why := fault_of(file, sha256)) is not None:
                yield file.name, why
        if not checkpoint_of(path).exists():
            yield checkpoint_of(path).name, "it is missing"
