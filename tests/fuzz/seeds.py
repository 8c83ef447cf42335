"""What is mutated: every carrier's own fixtures, and its payloads in the corpus where that is at hand."""

from functools import cache
from pathlib import Path
from typing import Final

from tests.events.carriers.test_corpus import CORPUS

FIXTURES: Final = Path(__file__).parents[1] / "events" / "carriers" / "fixtures"


@cache
def fixtures(carrier_id: str) -> tuple[bytes, ...]:
    """The bodies of a carrier's fixtures, in the order of their names."""
    folder = FIXTURES / carrier_id
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return tuple(path.read_bytes() for path in paths if not path.name.endswith(".expected.json"))


@cache
def payloads(carrier_id: str) -> tuple[bytes, ...]:
    """The bodies of a carrier in the corpus; none where that is absent."""
    folder = CORPUS / carrier_id
    return tuple(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()) if folder.is_dir() else ()
