"""X12 is read by an extra: without it the message waits for one, with a sentence that says
which.
"""

import sys

import pytest

from events.carriers import CARRIERS
from events.errors import Cause, UnreadableMessageError
from tests.events.carriers.carrier_fixtures import fixture_paths, read


def test_without_the_extra_the_message_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyx12.x12file", None)
    with pytest.raises(UnreadableMessageError, match=r"statesvc\[edi\]") as caught:
        read(CARRIERS["x12_214"], fixture_paths("x12_214")[0].read_bytes())
    assert caught.value.cause is Cause.UNREADABLE


def test_an_interchange_that_ends_within_a_status_keeps_what_it_printed() -> None:
    body = next(path for path in fixture_paths("x12_214") if path.stem == "tildes").read_bytes()
    assert len(read(CARRIERS["x12_214"], body.split(b"SE*")[0]).readings) == 1
