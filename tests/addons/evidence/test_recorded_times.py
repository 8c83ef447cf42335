"""When a bundle's entries were recorded: back-dated ones are named, and an authority's stamp proves the rest."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from events.vocabulary import Status
from statesvc.addons.evidence.check_bundle import check, remarks
from statesvc.addons.evidence.evidence_forms import html_of
from statesvc.addons.evidence.evidence_report import report_of
from statesvc.addons.verify import verify_command as command
from tests.addons.evidence.test_bundle import NUMBER, both, bundle_of, keys_of
from tests.statesvc.sealer.test_heads_outside import stamping, stamps, tsa
from tests.world.database import Clock
from tests.world.log_builder import LogBuilder, scan
from tests.world.stamping import Tsa, make_tsa


async def back_dated_bundle(log: LogBuilder, database: Any) -> dict[str, Any]:
    await log.parcel("1ZOTHER")
    await log.seal()
    clock = Clock(database.owner_dsn)
    await clock.advance(-3600)
    await log.append(scan(NUMBER, 1, Status.PICKED_UP))
    await clock.advance(3600)
    await log.seal()
    return await bundle_of(log)


async def test_a_back_dated_batch_is_named_in_the_bundle_the_report_and_the_offline_check(
    database: Any, event_log: LogBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = await back_dated_bundle(event_log, database)
    assert both(bundle, keys_of(bundle)) == (True, True)
    assert all("recorded_after" in entry for entry in bundle["entries"])
    report = report_of(bundle)
    named = [remark for remark in report.summary.remarks if remark.startswith("Back-dated")]
    assert len(named) == len(bundle["entries"])
    assert "inserted with an old time, or a clock was wrong" in named[0]
    assert "Back-dated" in html_of(report).decode()
    file = tmp_path / "bundle.json"
    file.write_text(json.dumps(bundle))
    parser = argparse.ArgumentParser()
    command.configure(parser)
    assert (
        command.run(parser.parse_args(["--bundle", str(file), "--key", str(keys_of(bundle)[0])]))
        == 0
    )
    shown = capsys.readouterr().out
    assert "Look at this: /entries/0: recorded" in shown
    assert "The evidence holds" in shown


def without(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "recorded_after"}


async def test_what_is_in_order_is_not_named_and_a_name_that_does_not_fit_is_a_flaw(
    database: Any, event_log: LogBuilder
) -> None:
    await event_log.parcel(NUMBER)
    await Clock(database.owner_dsn).advance(7200)
    await event_log.seal()
    bundle = await bundle_of(event_log)
    document = json.dumps(bundle).encode()
    assert (check(document, keys_of(bundle)), remarks(document)) == ([], [])
    bundle["entries"][0]["recorded_after"] = json.loads(bundle["entries"][0]["canonical"])[
        "recorded_at"
    ]
    flaws = check(json.dumps(bundle).encode(), keys_of(bundle))
    assert "/entries/0/recorded_after" in {flaw.pointer for flaw in flaws}


async def test_entries_of_a_bundle_show_it_of_each_other(
    database: Any, event_log: LogBuilder
) -> None:
    """Whatever the bundle says of itself: an attempt that is dated back by an hour stands behind
    the event that it is about.
    """
    clock = Clock(database.owner_dsn)
    await event_log.parcel(NUMBER, steps=1)
    await clock.advance(7200)
    await event_log.parcel(NUMBER, steps=2)
    await event_log.seal()
    await clock.advance(-3600)
    await event_log.attempt()
    await clock.advance(3600)
    await event_log.seal()
    bundle = await bundle_of(event_log)
    stripped = {**bundle, "entries": [without(entry) for entry in bundle["entries"]]}
    named = [
        bundle["entries"][int(remark.pointer.split("/")[2])]
        for remark in remarks(json.dumps(stripped).encode())
    ]
    assert named[-1] == bundle["entries"][-1]
    assert {entry["kind"] for entry in named} <= {"fanout", "attempt"}


__all__ = ["tsa"]


async def test_evidence_bears_the_stamp_and_proves_it_offline(
    database: Any, event_log: LogBuilder, tsa: Tsa, tmp_path: Path
) -> None:
    await event_log.everything()
    await event_log.seal()
    async with stamping(database, tsa):
        await stamps(event_log, 1)
    await event_log.parcel("1Z0009")
    await event_log.seal()
    bundle = await bundle_of(event_log, NUMBER)
    later = await bundle_of(event_log, "1Z0009")
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
