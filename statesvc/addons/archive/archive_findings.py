"""Findings about the archives for `statesvc status`."""

from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.addons.archive.archive_identity import read_archive_failures, read_refusal
from statesvc.background.duration import duration
from statesvc.health.finding import Finding, Urgency
from statesvc.health.own_check import OwnCheck


async def _find(connection: AsyncConnection[Any]) -> list[Finding]:
    found = []
    if (refusal := await read_refusal(connection)) is not None:
        text = (
            f"for {duration(refusal.seconds)} nothing is archived and nothing leaves the database:"
            f" {refusal.why}"
        )
        found.append(
            Finding(urgency=Urgency.NOW, about="archive", text=text, page="ArchiveRefused")
        )
    for failure in await read_archive_failures(connection):
        text = (
            f"{failure.periods:,} {failure.unit} cannot be archived and stay in the database; the"
            f" last: {failure.why}"
        )
        found.append(
            Finding(urgency=Urgency.HUMAN, about="archive", text=text, page="ArchiveRefused")
        )
    return found


CHECK: Final = OwnCheck("archive", "refuses nothing", _find)
