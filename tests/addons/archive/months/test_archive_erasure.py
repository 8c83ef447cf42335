"""An erasure reaches the archive without touching it."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from statesvc.privacy.erasure import Erasure, erase
from tests.statesvc.privacy.legible_values import legible
from tests.world.attack import places
from tests.world.log_archivist import Archivist, shipment
from tests.world.story import scan

WORD = "Zebedee Quux"
OTHER = "Mortimer Other"


def cells(folder: Path) -> Iterator[bytes]:
    """Yield every value of every file, and the files as they are."""
    for path in folder.iterdir():
        yield path.read_bytes()
        if path.suffix == ".parquet":
            for column in pq.read_table(path).columns:
                yield from (
                    value if isinstance(value, bytes) else str(value).encode()
                    for value in column.to_pylist()
                    if value is not None
                )


async def test_after_an_erasure_neither_tables_nor_files_tell_of_the_person(
    archivist: Archivist,
) -> None:
    await archivist.log.say(scan("1Z0050", 1, None, signed_by=WORD))
    await archivist.log.say(scan("1Z0051", 1, None, signed_by=OTHER))
    await archivist.two_months()
    month = await archivist.archived()
    files = {path.name: path.read_bytes() for path in archivist.folder.iterdir()}
    assert (
        await archivist.log.rows(
            f"SELECT FROM statesvc.event WHERE shipment_id = '{shipment('1Z0050')}'"
        )
        == []
    )
    legibly = await legible(archivist.connection, cells(archivist.folder))
    assert WORD.encode() in legibly, "the hunt finds what is there"
    assert WORD.encode() not in await legible(archivist.connection), "it was in the file alone"
    erasure = Erasure(
        carrier_id="ups", tracking_number="1Z0050", why="asked to", actor="tester", backup_days=7
    )
    assert (await erase(archivist.connection, erasure)).shipments == [shipment("1Z0050")]
    legibly = await legible(archivist.connection, cells(archivist.folder))
    assert WORD.encode() not in legibly
    assert OTHER.encode() in legibly
    await archivist.archive.restore_shipments(archivist.connection, [shipment("1Z0050")])
    assert WORD.encode() not in await legible(archivist.connection)
    assert {path.name: path.read_bytes() for path in archivist.folder.iterdir()} == files
    await archivist.log.seal()
    assert places(archivist.verify()) == []
    assert month.file_name in files
