"""Seeds of mutations: every carrier's own fixtures, and its payloads in the corpus
where that is at hand.
"""

from functools import cache

from tests.corpus_shares import CORPUS
from tests.events.carriers.carrier_fixtures import fixture_paths


@cache
def fixtures(carrier_id: str) -> tuple[bytes, ...]:
    """Return the bodies of a carrier's fixtures, in the order of their names."""
    return tuple(path.read_bytes() for path in fixture_paths(carrier_id))


@cache
def payloads(carrier_id: str) -> tuple[bytes, ...]:
    """Return the bodies of a carrier in the corpus; none where that is absent."""
    folder = CORPUS / carrier_id
    return (
        tuple(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
        if folder.is_dir()
        else ()
    )
