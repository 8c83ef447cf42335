"""The directory of cells: what it takes, what it refuses by name, and that changes are whole and counted."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from statesvc.cells.directory import (
    CellDirectory,
    DirectoryError,
    change_directory,
    directory_text,
    parse_directory,
    read_directory,
)

GOOD = """
epoch = 3
default = "north"

[cells.north]
urls = ["http://127.0.0.1:8081", "http://[::1]:8081"]
database = "NORTH_DATABASE_URL"

[cells.south]
urls = ["http://south.internal:8080/"]

[carriers]
ups = "south"
17track = "north"
"""


def test_a_carrier_that_is_not_named_belongs_to_the_default_cell() -> None:
    directory = parse_directory(GOOD, "cells.toml")
    assert [directory.cell_of(carrier) for carrier in ("ups", "17track", "fedex")] == [
        "south",
        "north",
        "north",
    ]
    assert directory.carriers_of("south") == ["ups"]


def test_what_is_written_is_read_back_as_it_was() -> None:
    directory = parse_directory(GOOD, "cells.toml")
    assert parse_directory(directory_text(directory), "again") == directory


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epoch = 3", "epoch = 0", "epoch"),
        ("epoch = 3", "epoch = 3\nflavour = 1", "flavour"),
        ('default = "north"', 'default = "west"', "cells that it does not have: west"),
        ('ups = "south"', 'ups = "west"', "cells that it does not have: west"),
        ('ups = "south"', 'ups = "south"\nups = "north"', "is no TOML"),
        ("http://south.internal:8080/", "https://south.internal:8080", "TLS ends at the proxy"),
        ("http://south.internal:8080/", "http://me:pass@south.internal:8080", "nothing more"),
        ("http://south.internal:8080/", "http://south;evil:8080", "characters in its host"),
        (
            "http://south.internal:8080/",
            "http://127.0.0.1:8081",
            "north and south have the same address",
        ),
        ("NORTH_DATABASE_URL", "postgresql://me:secret@host/db", "database"),
        ("NORTH_DATABASE_URL", "STATESVC_NORTH", "must not begin with STATESVC_"),
        ("[cells.south]", "[cells.So_uth]", "cells.So_uth"),
    ],
)
def test_what_is_wrong_is_named_and_no_value_of_an_address_is_repeated(
    old: str, new: str, said: str
) -> None:
    with pytest.raises(DirectoryError) as refused:
        parse_directory(GOOD.replace(old, new), "cells.toml")
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


def test_changes_at_the_same_time_are_all_there_and_each_counts(tmp_path: Path) -> None:
    file = tmp_path / "cells.toml"
    file.write_text(GOOD)
    carriers = [f"carrier_{number}" for number in range(20)]

    def assign(carrier: str) -> None:
        change_directory(file, lambda known: _known(known).assigning(carrier, "south"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(assign, carriers))
    directory = read_directory(file)
    assert directory.epoch == 3 + len(carriers)
    assert set(carriers) <= set(directory.carriers_of("south"))


def test_a_refused_change_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "cells.toml"
    file.write_text(GOOD)
    with pytest.raises(DirectoryError, match="no cell west"):
        change_directory(file, lambda known: _known(known).assigning("ups", "west"))
    assert file.read_text() == GOOD


def _known(directory: CellDirectory | None) -> CellDirectory:
    assert directory is not None
    return directory
