"""Layouts that the shovel reads, as values: Celery's layouts, the mapping, delays, the pace.

No broker.
"""

import base64
import bz2
import gzip
import json
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from amqp.basic_message import Message as PyAmqpMessage
from kombu.transport.native_delayed_delivery import calculate_routing_key
from kombu.utils import json as kombu_json
from pamqp.commands import Basic

from events.carriers import CARRIERS
from statesvc.addons.shovel import celery_task
from statesvc.addons.shovel.amqp_properties import read_properties, wire_properties
from statesvc.addons.shovel.amqp_source import prefetch_shares
from statesvc.addons.shovel.backup import BackupWriter, read_backup
from statesvc.addons.shovel.celery_task import Task, UnreadableTaskError, as_bytes, read_task
from statesvc.addons.shovel.delayed_delivery import (
    delayed_address,
    destination,
    due_time,
    is_delaying,
    level_names,
)
from statesvc.addons.shovel.source_message import ShovelError, Taken, Transport
from statesvc.addons.shovel.task_mapping import Mapped, identities, parse_mapping

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULE = '[[rules]]\ntask = "t"\ncarrier = "ups"\nbody = "args.0"\n'


def taken(body: bytes, *, queue: str = "q", routing_key: str = "q", **properties: Any) -> Taken:
    wire = wire_properties(Basic.Properties(**properties))
    return Taken(
        transport=Transport.AMQP, queue=queue, body=body, properties=wire, routing_key=routing_key
    )


def task(body: bytes, headers: dict[str, Any] | None = None, **properties: Any) -> Task:
    return read_task(
        taken(body, headers={"task": "t", "id": "1"} | (headers or {}), **properties), now=NOW
    )


def test_properties_are_encoded_as_celerys_own_client_does() -> None:
    headers = {
        "retries": 300,
        "eta": None,
        "timelimit": [None, 1],
        "on": True,
        "f": 0.5,
        "nested": {"a": "é"},
    }
    sent = PyAmqpMessage(
        b"",
        application_headers=headers,
        content_type="application/json",
        priority=3,
        delivery_mode=2,
    )
    wire = sent._serialize_properties()  # noqa: SLF001 - what it puts on the wire
    assert wire_properties(read_properties(wire)) == wire


def test_long_integers_are_encoded_as_rabbitmq_delivers_them() -> None:
    wire = wire_properties(Basic.Properties(headers={"big": -(2**40)}))
    assert b"\x03bigl" in wire
    assert read_properties(wire).headers == {"big": -(2**40)}


def test_what_the_broker_added_is_not_published_again() -> None:
    dead = Basic.Properties(headers={"task": "x", "x-death": [{"count": 1}], "x-delivery-count": 2})
    assert read_properties(wire_properties(dead)).headers == {"task": "x"}


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ("2026-03-02T01:00:00.123456+02:00", datetime(2026, 3, 1, 23, 0, 0, 123456, tzinfo=UTC)),
        ("2026-03-02T01:00:00", datetime(2026, 3, 2, 1, tzinfo=UTC)),
        ("2026-03-02T01:00:00Z", datetime(2026, 3, 2, 1, tzinfo=UTC)),
        (None, None),
    ],
)
def test_an_eta_is_the_instant_that_celery_takes_it_for(
    stated: str | None, meant: datetime | None
) -> None:
    assert task(b"[[], {}, {}]", {"eta": stated}).eta == meant
    first = json.dumps({"task": "t", "id": "1", "args": [], "kwargs": {}, "eta": stated}).encode()
    assert read_task(taken(first, content_type="application/json"), now=NOW).eta == meant


@pytest.mark.parametrize("stated", ["tomorrow", True, 10**18, [1]])
def test_an_eta_that_is_no_time_is_refused_not_guessed(stated: object) -> None:
    with pytest.raises(UnreadableTaskError, match="its eta is"):
        task(b"[[], {}, {}]", {"eta": stated})


def test_compressed_bodies_are_read_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_task, "_PLAIN_BYTES_MAX", 1 << 20)
    body = b'[["x"], {}, {}]'
    for name, content in (
        ("application/x-gzip", zlib.compress(body)),
        ("application/x-bz2", bz2.compress(body)),
    ):
        assert task(content, {"compression": name}).args == ["x"]
    for name, content in (
        ("application/x-gzip", b"no"),
        ("application/x-brotli", body),
        ("application/x-gzip", zlib.compress(bytes(1 << 21))),
    ):
        with pytest.raises(UnreadableTaskError, match="compress"):
            task(content, {"compression": name})


@pytest.mark.parametrize("value", ["text é", b"bytes", b"\xff\x00"])
def test_arguments_come_out_as_kombu_put_them_in(value: str | bytes) -> None:
    found = json.loads(kombu_json.dumps([value]))[0]
    assert as_bytes(found) == (value if isinstance(value, bytes) else value.encode())


def test_objects_are_bodies_as_json_and_numbers_are_none() -> None:
    assert as_bytes({"a": ["é", 1.5, None]}) == '{"a":["é",1.5,null]}'.encode()
    assert (as_bytes(7), as_bytes(None)) == (None, None)


def test_a_task_is_known_by_its_id_and_arguments_as_0_1_noted_them() -> None:
    first, again = (task(b'[["x"], {}, {}]', {"retries": retries}) for retries in (0, 3))
    assert identities(first) == identities(again)
    assert identities(first) == (
        b'content\x1ftask\x1f1\x1f["t", ["x"], {}]',
        b'content\x1funmapped\x1ftask\x1f1\x1f["t", ["x"], {}]',
    )


def test_delays_are_celerys_own() -> None:
    for seconds in (1, 59, 86400 * 5 + 11, 2**28 - 1):
        assert delayed_address("celery_delayed_3", "x.y", delay=timedelta(seconds=seconds)) == (
            "celery_delayed_27",
            calculate_routing_key(seconds, "x.y"),
        )
    assert (
        delayed_address("app_celery_delayed_3", "q", delay=timedelta(seconds=-5))[1]
        == "0." * 28 + "q"
    )
    assert destination(calculate_routing_key(77, "x.y")) == "x.y"
    assert level_names("app")[0] == "app_celery_delayed_27"
    assert (
        is_delaying("celery_delayed_27"),
        is_delaying("celery_delayed_28"),
        is_delaying("celery"),
    ) == (True, False, False)


def test_a_retried_task_of_kombu_5_5_4_or_5_6_2_goes_where_it_was_first_sent() -> None:
    bits = [".".join(f"{seconds:028b}") for seconds in (0b1011, 30, 10)]
    key = ".".join([*bits, "x.y"])
    assert destination(key) == "x.y"
    assert due_time("celery_delayed_3", key, now=NOW) == NOW + timedelta(seconds=0b1011)
    assert (
        delayed_address("celery_delayed_3", key, delay=timedelta(seconds=11))[1] == f"{bits[0]}.x.y"
    )


def test_a_delayed_message_without_an_eta_is_due_at_the_latest_when_its_levels_have_passed() -> (
    None
):
    key = calculate_routing_key(0b1011, "q")
    assert due_time("celery_delayed_3", key, now=NOW) == NOW + timedelta(seconds=0b1011)
    assert due_time("celery_delayed_1", key, now=NOW) == NOW + timedelta(seconds=0b11)
    assert due_time("q", key, now=NOW) is None


def test_rules_are_tried_in_their_order_and_places_are_paths() -> None:
    text = (
        RULE
        + '[[rules]]\ntask = "t.*"\nheaders = { x = "a*" }\ncarrier_from = "kwargs.from.0"\nbody ='
        ' "kwargs.event.raw"\n'
    )
    mapping = parse_mapping(text, name="m", carriers=CARRIERS)
    body = json.dumps([[], {"from": ["fedex"], "event": {"raw": "<x/>"}}, {}]).encode()
    found = mapping.classify(taken(body, headers={"task": "t.u", "id": "1", "x": "ab"}), now=NOW)
    assert isinstance(found, Mapped)
    assert (found.carrier_id, found.body) == ("fedex", b"<x/>")
    assert json.loads(found.headers) == {"celery-task": "t.u", "celery-task-id": "1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rules: Field required"),
        ("rules = []", "rules"),
        (RULE + 'carrier_from = "body"\n', "rules 1: name either `carrier` or `carrier_from`"),
        ('[[rules]]\ncarrier = "ups"\nbody = "body"\n', "name a `task`, or `headers`"),
        ('unmaped = "refuse"\n' + RULE, "unmaped means nothing here (did you mean 'unmapped'?)"),
        (RULE + 'encoding = "hex"\n', "rules 1 encoding: Input should be 'text' or 'base64'"),
        (RULE.replace("ups", "") + "", "name either"),
    ],
)
def test_a_flaw_of_the_mapping_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ShovelError) as refused:
        parse_mapping(text, name="m.toml", carriers=CARRIERS)
    assert words in str(refused.value)


def test_a_body_beyond_the_carriers_bound_does_not_map() -> None:
    mapping = parse_mapping(RULE, name="m", carriers=CARRIERS)
    body = json.dumps([["x" * (CARRIERS["ups"].body_bytes_max + 1)], {}, {}]).encode()
    found = mapping.classify(taken(body, headers={"task": "t", "id": "1"}), now=NOW)
    assert not isinstance(found, Mapped)
    assert "that ups may send" in found.detail


def messages(count: int) -> list[Taken]:
    return [taken(f"{number}".encode() * 50, headers={"n": number}) for number in range(count)]


def test_a_backup_is_read_as_it_was_written_and_without_the_batch_that_was_not_finished(
    tmp_path: Path,
) -> None:
    writer = BackupWriter(tmp_path)
    writer.append(messages(5))
    writer.append(messages(3))
    writer.close()
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(read_backup(tmp_path)) == [messages(5), messages(3)]
    assert len(gzip.decompress(file.read_bytes()).splitlines()) == 10
    whole = file.read_bytes()
    file.write_bytes(whole[:-60])
    assert [len(batch) for batch in read_backup(tmp_path)] == [5]


def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    writer = BackupWriter(tmp_path)
    writer.append(messages(5))
    writer.close()
    (file,) = tmp_path.iterdir()
    lines = gzip.decompress(file.read_bytes()).replace(
        base64.b64encode(b"1" * 50), base64.b64encode(b"2" * 50)
    )
    file.write_bytes(gzip.compress(lines))
    with pytest.raises(ShovelError, match="its checksum does not fit"):
        list(read_backup(tmp_path))
    file.write_bytes(b"\x00" * 100)
    with pytest.raises(ShovelError, match="does not decompress"):
        list(read_backup(tmp_path))
    file.unlink()
    with pytest.raises(ShovelError, match="there is no backup"):
        list(read_backup(tmp_path))


def test_most_of_the_prefetch_goes_where_most_waits() -> None:
    counts = {"full": 9000, "half": 1000, **{f"empty-{number}": 0 for number in range(8)}}
    shares = prefetch_shares(1000, counts)
    assert (shares["full"], shares["half"], shares["empty-0"]) == (500, 100, 50)
    assert sum(shares.values()) <= 1000
    assert set(prefetch_shares(1000, dict.fromkeys(counts, 0)).values()) == {100}
    assert set(prefetch_shares(1, counts).values()) == {1}
