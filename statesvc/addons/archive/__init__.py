"""Months of the log as Parquet files: written, compared, taken out of the database, and read again
when an old entry is needed.

`docs/log-archive.md` has the format and the guarantees. pyarrow is imported only where a file is
open.
"""

from typing import Final

from statesvc.seams import AddOn, ListedCommand

ADDON: Final = AddOn(
    commands={
        "Admin": {
            "archive": ListedCommand(
                "statesvc.addons.archive.archive_command",
                "run, list and verify the archives of bodies and of the log",
            )
        }
    },
    findings="statesvc.addons.archive.archive_checks:CHECK",
    doctor="statesvc.addons.archive.archive_checks:check_archives",
    history="statesvc.addons.archive.file_queries",
    jobs={"worker": "statesvc.addons.archive.archive_jobs:archive_jobs"},
)
