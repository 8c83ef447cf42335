"""Findings of doctor about the spool: its folder, or its stream."""

import os
from pathlib import Path

import pytest

from statesvc.cli.doctor import spool_check
from statesvc.cli.doctor.spool_check import check_spool
from statesvc.health.finding import Urgency
from statesvc.settings.service_settings import SpoolSettings
from statesvc.spool import nats_spool
from tests.world.brokers import Nats
from tests.world.ports import free_port


async def found(url: str | None, **settings: float) -> list[tuple[Urgency, str]]:
    findings = await check_spool(SpoolSettings.model_validate({"url": url, **settings}))
    return [(finding.urgency, finding.text) for finding in findings]


async def test_without_a_spool_there_is_nothing_to_say() -> None:
    assert await found(None) == []


async def test_a_folder_is_written_and_synced_and_left_as_it_was(tmp_path: Path) -> None:
    ((urgency, text),) = await found(f"file://{tmp_path}/spool", bytes_max=1)
    assert urgency is Urgency.OK
    assert "lost with its disk" in text
    assert [*(tmp_path / "spool").iterdir()] == []


async def test_a_folder_that_cannot_be_written_or_synced_takes_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    ((urgency, text),) = await found(f"file://{tmp_path}/file")
    assert (urgency, "takes no message" in text) == (Urgency.NOW, True)

    def fail(_: int) -> None:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(os, "fdatasync", fail)
    ((urgency, text),) = await found(f"file://{tmp_path}/spool")
    assert (urgency, "Input/output error" in text) == (Urgency.NOW, True)


async def test_too_little_space_and_a_slow_sync_are_weaknesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((urgency, text),) = await found(f"file://{tmp_path}", bytes_max=10**18)
    assert (urgency, "STATESVC_SPOOL_BYTES_MAX" in text) == (Urgency.HUMAN, True)
    monkeypatch.setattr(spool_check, "SYNC_SECONDS_MAX", 0.0)
    ((urgency, text),) = await found(f"file://{tmp_path}", bytes_max=1)
    assert (urgency, "an ACK waits for it" in text) == (Urgency.HUMAN, True)


async def test_servers_that_do_not_answer_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    # one that refuses is asked again until then
    monkeypatch.setattr(nats_spool, "_ANSWER_SECONDS", 0.2)
    ((urgency, text),) = await found(f"nats://127.0.0.1:{free_port()}/SPOOL")
    assert (urgency, "no server of SPOOL answers" in text) == (Urgency.NOW, True)


@pytest.mark.usefixtures("own_processes")
async def test_a_stream_is_judged_by_its_replicas_its_memory_and_what_it_drops(
    tmp_path: Path,
) -> None:
    server = Nats(tmp_path / "nats")
    await server.start()
    try:
        assert await found(f"{server.address}/NONE") == [
            (Urgency.OK, "its servers answer; ingress makes the stream at its start")
        ]
        await server.add_stream("SPOOL", ["SPOOL.kept"], max_age=60, duplicate_window=30)
        findings = await found(f"{server.address}/SPOOL")
    finally:
        await server.kill()
    assert [urgency for urgency, _ in findings] == [
        Urgency.NOW,
        Urgency.HUMAN,
        Urgency.HUMAN,
        Urgency.OK,
    ]
    flaw, replicas, memory, sync = (text for _, text in findings)
    assert "drops messages" in flaw
    assert "1 replicas" in replicas
    assert "for 30 s" in memory
    assert "sync_interval: always" in sync
