"""A bundle has the stamp of an authority over the head that it proves."""

import json
from pathlib import Path
from typing import Any

from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.evidence_forms import html_of
from statesvc.addons.evidence.evidence_report import report_of
from tests.addons.evidence.test_bundle import NUMBER, both, bundle_of, keys_of
from tests.statesvc.sealer.test_stamper import stamping, stamps, tsa
from tests.world.log_builder import log_builder
from tests.world.stamping import Tsa, make_tsa

__all__ = ["tsa"]


async def test_evidence_bears_the_stamp_and_proves_it_offline(
    database: Any, tsa: Tsa, tmp_path: Path
) -> None:
    async with log_builder(database) as log:
        await log.everything()
        await log.seal()
        async with stamping(database, tsa):
            await stamps(log, 1)
        await log.parcel("1Z0009")
        await log.seal()
        bundle = await bundle_of(log, NUMBER)
        later = await bundle_of(log, "1Z0009")
    keys = keys_of(bundle)
    document = json.dumps(bundle).encode()
    assert both(bundle, keys) == (True, True)
    assert check(document, keys, trust=tsa.trust) == []
    assert [
        flaw.pointer for flaw in check(document, keys, trust=make_tsa(tmp_path / "stranger").trust)
    ] == ["/log/stamp/token"]
    shown = html_of(report_of(bundle)).decode()
    assert "of all entries of this document" in shown
    assert "CN=Stamps &amp; Sons" in shown
    # what came after the stamp is not claimed to be under it
    assert "except the last" in html_of(report_of(later)).decode()
    for name, value in (
        ("consistency", []),
        ("token", "AAAA"),
        ("stamped_at", "2020-01-01T00:00:00+00:00"),
        ("authority", "CN=Me"),
    ):
        changed = json.loads(document)
        changed["log"]["stamp"][name] = value
        pointers = [flaw.pointer for flaw in check(json.dumps(changed).encode(), keys)]
        assert any(pointer.startswith("/log/stamp") for pointer in pointers), (name, pointers)
    del (unstamped := json.loads(document))["log"]["stamp"]
    assert "/log" in [
        flaw.pointer for flaw in check(json.dumps(unstamped).encode(), keys, trust=tsa.trust)
    ]
