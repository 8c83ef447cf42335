"""Commits of another worker between this one's first look and its locks."""

from dataclasses import replace
from typing import Any

import pytest

from statesvc.log.event_store import lock_streams
from tests.world.shop import Shop, says

LOCK = "statesvc.append.look_up.lock_streams"
SCAN = {"number": "A", "status": "delivered", "native_id": "1"}


async def process_after_the_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, mine: bytes, theirs: bytes
) -> None:
    await shop.push(mine)
    await shop.push(theirs)
    (first,), other = (
        await shop.claim(1),
        replace(shop, context=replace(shop.context, worker="worker-2")),
    )
    second = await other.claim(1)

    async def locked_late(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(LOCK, lock_streams)
        await other.process(second)
        return await lock_streams(*arguments, **options)

    monkeypatch.setattr(LOCK, locked_late)
    await shop.process([first])


async def test_a_signer_is_told_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.say(SCAN)
    signed = {**SCAN, "signed_by": "X"}
    await process_after_the_other(
        shop, monkeypatch, says(signed, envelope=1), says(signed, envelope=2)
    )
    assert [event["kind"] for event in await shop.events("A")] == ["scan", "info"]


async def test_a_scan_of_a_new_shipment_is_told_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = {**SCAN, "signed_by": "X"}
    await process_after_the_other(
        shop, monkeypatch, says(signed, envelope=1), says(SCAN, envelope=2)
    )
    assert [event["kind"] for event in await shop.events("A")] == ["scan", "info"]


async def test_other_facts_become_a_conflict(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await process_after_the_other(
        shop, monkeypatch, says(SCAN), says({**SCAN, "city": "Shelbyville"})
    )
    assert [event["location"]["city"] for event in await shop.events("A")] == ["Shelbyville"]
    assert await shop.value("SELECT count(*) FROM statesvc.conflict") == 1
