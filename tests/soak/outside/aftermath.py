"""Twenty days later: bodies are in the archive, a person is erased there too, and nothing personal
stands anywhere in clear.
"""

import asyncio
import base64
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.soak.outside.client import Client, CommandLine
from tests.soak.outside.envelopes import MARK
from tests.soak.outside.record import Record

DAYS: Final = 20
_LATER: Final = f"""
CREATE OR REPLACE FUNCTION statesvc.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN clock_timestamp() + interval '{DAYS} days'
"""


@dataclass(slots=True)
class Aftermath:
    """`broken` as in the reckoning."""

    broken: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    figures: Counter[str] = field(default_factory=Counter)


def in_clear(mark: str) -> re.Pattern[bytes]:
    """Return a pattern of the mark as text, in hexadecimal, and within base64 at
    each of its three offsets.
    """
    text = mark.encode()
    spellings = {text, text.lower(), text.hex().encode(), text.hex().upper().encode()}
    for before in range(3):
        # without the characters that the neighbours have a part in
        whole = base64.b64encode(b"\0" * before + text)
        spellings.add(whole[-(-before * 4 // 3) : (before + len(text)) * 4 // 3])
    return re.compile(b"|".join(map(re.escape, sorted(spellings))), re.IGNORECASE)


async def months_later(
    *,
    client: Client,
    shell: CommandLine,
    record: Record,
    archive: Path,
    logs: Sequence[Path],
    superuser_dsn: str,
    programs: Path,
) -> Aftermath:
    """Check months later, when nothing but the API runs any more."""
    found = Aftermath()
    async with await psycopg.AsyncConnection.connect(superuser_dsn, autocommit=True) as connection:
        await connection.execute(_LATER.encode())
    await shell.until_done("archive", "run")
    await _erase_archived(found, client, shell, record)
    files = await asyncio.to_thread(
        lambda: sorted(path for path in archive.rglob("*") if path.is_file())
    )
    found.figures["archived files"] = len(files)
    if not files:
        found.broken["nothing was archived"].append(archive.name)
    pattern = in_clear(MARK)
    for path in (*files, *logs):
        if match := pattern.search(path.read_bytes()):
            found.broken["files that show a person"].append((path.name, match.group()))
    dump = await _dump(superuser_dsn, programs)
    found.figures["bytes of the dump"] = len(dump)
    for match in pattern.finditer(dump):
        found.broken["a dump that shows a person"].append(
            dump[max(0, match.start() - 200) : match.end() + 40]
        )
    return found


async def _erase_archived(
    found: Aftermath, client: Client, shell: CommandLine, record: Record
) -> None:
    """Erase one person whose bodies are archived by now; another is not erased."""
    erased = set(record.rows("SELECT carrier, number FROM erasure"))
    people = [
        (key, carrier, number)
        for key, carrier, number, expected in record.parcels()
        if (carrier, number) not in erased and not expected["claimed"] and carrier != "canonical"
    ]
    (key, carrier, number), (other, *_) = people[:2]
    bodies, control = (
        record.rows(
            "SELECT DISTINCT message, body.body FROM ack JOIN body ON body.id = ack.body WHERE"
            " parcel = ?",
            each,
        )
        for each in (key, other)
    )
    for message, sent in bodies + control:
        status, told = await client.get(f"/v1/messages/{message}?include=personal")
        if (
            status != 200
            or told["body_place"] != "archived"
            or base64.b64decode(told["body_base64"] or "") != sent
        ):
            found.broken["bodies that the archive does not give back"].append(
                (message, status, told.get("body_place"))
            )
    await shell.until_done("erase", carrier, number, "--why", "asked to, later", "--json")
    for message, _ in bodies:
        status, told = await client.get(f"/v1/messages/{message}?include=personal")
        if status == 200 and told.get("body_base64") is not None:
            found.broken["archived bodies of an erased person that can be read"].append(message)
    for message, sent in control:
        _, told = await client.get(f"/v1/messages/{message}?include=personal")
        if base64.b64decode(told.get("body_base64") or "") != sent:
            found.broken["archived bodies that another's erasure took"].append(message)


async def _dump(dsn: str, programs: Path) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(programs / "pg_dump", "--dbname", dsn),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    dump, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return dump
