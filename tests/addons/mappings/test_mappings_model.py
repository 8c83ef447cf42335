"""Whatever is taught and taken back, in whatever order: an event is read by the narrowest of the
latest rows, or by its normalizer.
"""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.event import Raw
from events.identity.ids import text_digest
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.addons.mappings.mapped_code import MappedCode, PrintedCode
from statesvc.addons.mappings.mapping_store import NotMappedError, current_mappings, teach
from statesvc.reading.code_mapping import Mappings
from tests.world.worker_harness import CARRIER_ID, WorkerHarness

MEANINGS = [
    None,
    Meaning(Kind.INFO),
    Meaning(Kind.SCAN, Status.LOST),
    Meaning(Kind.SCAN, Status.EXCEPTION, Reason.HELD),
    Meaning(Kind.SCAN, Status.DELIVERED),
]
CODES = st.builds(
    MappedCode,
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, "T"]),
    st.sampled_from(["X", "Y"]),
    st.sampled_from([None, "R"]),
    st.sampled_from([None, "1", "2"]),
)


def expected(
    rows: list[tuple[MappedCode, Meaning | None]], carrier_id: str, raw: Raw, text: str | None
) -> Meaning | None:
    """Return the narrowest row that holds and matches; a reason is narrower than a text."""
    latest = dict(rows)
    matching = [
        (code.raw_reason is not None, code.raw_text is not None, meaning)
        for code, meaning in latest.items()
        if meaning is not None
        and code[:3] == (carrier_id, raw.type, raw.code)
        and code.raw_reason in {None, raw.reason}
        and code.raw_text in {None, text}
    ]
    return max(matching, key=lambda each: each[:2])[2] if matching else None


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(CODES, st.sampled_from(MEANINGS)), max_size=12),
    asked=st.tuples(CODES, st.booleans()),
    cut=st.integers(0, 12),
)
def test_rows_mean_what_the_model_says_however_they_are_taken_in(
    rows: list[tuple[MappedCode, Meaning | None]], asked: tuple[MappedCode, bool], cut: int
) -> None:
    def columns(revision: int, code: MappedCode, meaning: Meaning | None) -> tuple[Any, ...]:
        said = (
            (None, None, None)
            if meaning is None
            else (meaning.kind.value, meaning.status, meaning.reason)
        )
        return (revision, *code, *said)

    written = [columns(revision, *row) for revision, row in enumerate(rows, 1)]
    mappings = Mappings()
    mappings.take(written[:cut])
    mappings.take(written)
    about, _ = asked
    raw = Raw(type=about.raw_type, code=about.raw_code, reason=about.raw_reason)
    assert mappings.revision == len(rows)
    assert mappings.meaning_of(about.carrier_id, raw, about.raw_text) == expected(
        rows, about.carrier_id, raw, about.raw_text
    )


@pytest.mark.slow
async def test_taught_and_taken_back_at_random_events_are_read_as_the_model_says(
    harness: WorkerHarness,
) -> None:
    chance = random.Random(16)
    digest = harness.keyring.carrier_digest(CARRIER_ID)
    rows: list[tuple[MappedCode, Meaning | None]] = []
    for number in range(60):
        printed = PrintedCode(
            carrier_id=CARRIER_ID,
            raw_type="T",
            raw_code=chance.choice(["X", "Left with Ann", "Left  with ANN."]),
            raw_text=chance.choice([None, "Handed over.", "Not at home"]),
        )
        meaning = chance.choice(MEANINGS)
        in_effect = dict(rows).get(printed.clear(digest))
        try:
            await teach(
                harness.connection, harness.keyring, printed, meaning, why="a test", actor="tester"
            )
            rows.append((printed.clear(digest), meaning))
        except NotMappedError:
            assert (meaning, in_effect) == (None, None)
        code = chance.choice(["X", "LEFT WITH ANN"])
        said = chance.choice([None, "handed  OVER.", "not at home", "Something else"])
        await harness.ingest(
            {
                "number": f"N{number}",
                "kind": "unmapped",
                "code": code,
                **({"description": said} if said else {}),
            }
        )
        (event,) = await harness.events(f"N{number}")
        clear = PrintedCode(carrier_id=CARRIER_ID, raw_type="T", raw_code=code).clear(digest)
        raw = Raw(type=clear.raw_type, code=clear.raw_code)
        wanted = expected(
            rows, CARRIER_ID, raw, None if said is None else text_digest(said, digest)
        )
        assert (event["kind"], event.get("status"), event.get("reason")) == (
            ("unmapped", None, None)
            if wanted is None
            else (wanted.kind, wanted.status, wanted.reason)
        )
    held = {row.code for row in await current_mappings(harness.connection)}
    assert held == {code for code, meaning in dict(rows).items() if meaning is not None}
    texts = {
        stands for (stands,) in await harness.rows("SELECT stand_in FROM statesvc.mapped_text")
    }
    assert texts == {stands for code in held for stands in code.stand_ins}, (
        "a text goes with the last mapping that names it"
    )
    for table in ("code_mapping", "mapped_text", "action"):
        assert "ann" not in str(
            await harness.rows(f"SELECT t::text FROM statesvc.{table} t")
        ).lower().replace("channel", "")
