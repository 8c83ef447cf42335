"""Every registered carrier against the corpus of real payloads, which lies outside the
repository.
"""

import importlib
import pkgutil
from typing import Any

import pytest

from events import carriers
from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.identity.ids import identify
from tests.corpus_shares import (
    CORPORA,
    CORPUS,
    NO_CORPUS,
    differences,
    is_judged,
    payloads,
    printed_shares,
    read,
    shares,
)

PAYLOADS = [pytest.param(document, id=document["path"]) for document in payloads(CORPUS)]


@pytest.mark.parametrize(
    "document",
    PAYLOADS or [pytest.param(None, marks=pytest.mark.skip(reason=NO_CORPUS))],
)
def test_a_real_payload_says_what_is_expected_and_its_scans_have_different_ids(
    document: dict[str, Any],
) -> None:
    carrier_id, expected = document["carrier"], document["events"]
    try:
        normalized = read(carrier_id, (CORPUS / document["path"]).read_bytes())
    except UnreadableMessageError:
        assert is_judged(document), "this payload has to be read"
        assert expected == [], "only a payload without events may be refused"
        return
    readings = normalized.readings
    assert normalized.rejections == ()
    if is_judged(document):
        assert len(readings) == len(expected)
        for reading, event in zip(readings, expected, strict=True):
            assert list(differences(reading, event)) == []
    else:
        assert readings
    ids = {
        identify(each, carrier_id=carrier_id, digest=bytes, allow_unnumbered=True).event_id
        for each in readings
    }
    statements = {
        (each.tracking_number, each.discriminator, each.raw, each.time.identity, each.place)
        for each in readings
    }
    assert len(ids) >= len(statements)


def test_every_carrier_module_is_registered() -> None:
    modules = [
        importlib.import_module(f"events.carriers.{module.name}")
        for module in pkgutil.iter_modules(carriers.__path__)
    ]
    declared = {module.CARRIER.carrier_id for module in modules if hasattr(module, "CARRIER")}
    assert declared == set(CARRIERS)


def test_the_page_says_what_is_true_or_less() -> None:
    if not all((corpus / "expected.json").is_file() for corpus in CORPORA):
        pytest.skip(NO_CORPUS)
    said = printed_shares()
    assert shares().keys() == said.keys() - {"all"}
    worse = {
        name: (found, said[name])
        for name, found in shares().items()
        if found.events != said[name][0]
        or found.right < said[name][1]
        or found.silent > said[name][2]
    }
    assert worse == {}, "python -m tests.corpus_shares --write"
