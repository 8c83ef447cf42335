"""Bodies that are made to hurt: each ends as its events, as nothing, as a dead letter that says
why, or refused by size.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from events.carriers import CARRIERS
from tests.acceptance.corpus_folder import CORPUS, needs_corpus
from tests.acceptance.posting import post_webhook
from tests.acceptance.processes import Service, running
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert

MIB: Final = 1 << 20
EMPTY: Final = "empty"
GOOD: Final = ups_alert("1ZHOSTILE0000000001", "D/FS", day=3, minute=600).body


def _alert(**changes: Any) -> bytes:
    return json.dumps({**json.loads(GOOD), **changes}).encode()


def _alert_of_status(**changes: Any) -> bytes:
    return _alert(activityStatus={**json.loads(GOOD)["activityStatus"], **changes})


OURS: Final[dict[str, tuple[bytes, set[str]]]] = {
    "nul in a value": (_alert_of_status(description="a\x00b"), {"1 event"}),
    "lone surrogate": (
        GOOD.replace(b'"Scan"', b'"\\ud800"').replace(b"0001", b"0002"),
        {"1 event", "unreadable"},
    ),
    "nul in the number": (_alert(trackingNumber="1Z\x00HOSTILE3"), {"1 event", "unreadable"}),
    "number without end": (_alert(trackingNumber="1" * 100_000), {"too_complex"}),
    # no code: it is sealed as a text
    "code without end": (_alert_of_status(code="X" * 100_000), {"1 event"}),
    "long description": (_alert_of_status(description="d" * 300_000), {"1 event"}),
    "integer of 5,000 digits": (
        GOOD.replace(b'"000"', b"1" * 5000),
        {"1 event", "unreadable", "too_complex"},
    ),
    "name twice": (GOOD[:-1] + b', "trackingNumber": "OTHER"}', {"unreadable"}),
    "json in a json string": (json.dumps(GOOD.decode()).encode(), {"1 event"}),
    "utf-16 without a mark": (GOOD.decode().encode("utf-16-le"), {"1 event", "unreadable"}),
    "date that is none": (
        _alert(localActivityDate="20260230", gmtActivityDate="20260230"),
        {"1 event", "no events"},
    ),
    "year 1": (
        _alert(localActivityDate="00010101", gmtActivityDate="00010101", gmtOffset="+14:00"),
        {"1 event", "no events"},
    ),
    "null": (b"null", {EMPTY, "unknown_format"}),
    "only brackets": (b"[" * 1_000_000, {"too_complex", "unreadable"}),
    "too large": (b" " * (4 * MIB + 1), {"413"}),
}

THEIRS: Final[dict[str, set[str]]] = {
    "body_empty.json": {EMPTY, "unreadable"},
    "body_whitespace.json": {EMPTY, "unreadable"},
    "body_null.json": {EMPTY, "unknown_format"},
    "body_empty_list.json": {EMPTY, "no events", "unknown_format"},
    "body_empty_object.json": {EMPTY, "no events", "unknown_format"},
    "body_number.json": {EMPTY, "no events", "unknown_format"},
    "html_error_page.xml": {"unreadable", "refused_xml", "unknown_format"},
    "json_deep_nesting_100k.json": {"too_complex"},
    "json_double_encoded.json": {"1 event", "unknown_format"},
    "json_duplicate_keys.json": {"unreadable"},
    "json_huge_int_5000_digits.json": {"too_complex", "unreadable"},
    "json_latin1_bytes.json": {"unreadable"},
    "json_lone_surrogate.json": {"1 event", "unreadable", "unknown_format", "no events"},
    "json_nan_infinity.json": {"unreadable"},
    "json_nul_escape.json": {"1 event", "unreadable", "unknown_format", "no events"},
    "json_trailing_garbage.json": {"unreadable"},
    "json_truncated.json": {"unreadable"},
    "json_utf8_bom.json": {"1 event"},
    "json_utf16le_no_bom.json": {"1 event", "unreadable"},
    "unknown_code.json": {"1 event"},
    "oversize_description_300k.json": {"1 event", "413"},
    "xml_billion_laughs.xml": {"refused_xml"},
    "xml_quadratic_blowup.xml": {"refused_xml"},
    "xml_external_entity_file.xml": {"refused_xml"},
    "xml_external_dtd_http.xml": {"refused_xml"},
    "xml_parameter_entity.xml": {"refused_xml"},
    # names its root and nothing else: it is read, and is none of the carrier's formats
    "xml_harmless_doctype.xml": {"unknown_format"},
    "xml_xinclude.xml": {"refused_xml", "unknown_format"},
    "xml_deep_nesting_5k.xml": {"too_complex", "unreadable"},
    "xml_many_attributes_20k.xml": {"too_complex"},
    "xml_truncated.xml": {"unreadable"},
    "xml_declared_utf8_but_latin1.xml": {"unreadable"},
    "xml_declares_utf16_is_utf8.xml": {"unreadable"},
}
"""Outcomes of UPS bodies.

What is another carrier's shape ends as an unknown format, at worst with its members rejected.
"""
ELSEWHERE: Final = {EMPTY, "unknown_format", "no events", "no_tracking_number"}


def _reaching_for(file: Path) -> dict[str, bytes]:
    """Build XML that would bring the content of a file of this machine into the number."""
    alert = "<TrackResponse><Shipment><Package><TrackingNumber>{}</TrackingNumber></Package></Shipment></TrackResponse>"
    include = (
        '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text"'
        f' href="file://{file}"/>'
    )
    return {
        "entity": (
            f'<!DOCTYPE x [<!ENTITY f SYSTEM "file://{file}">]>{alert.format("&f;")}'.encode()
        ),
        "parameter entity": (
            f'<!DOCTYPE x [<!ENTITY % f SYSTEM "file://{file}"> %f;]>{alert.format("1Z")}'.encode()
        ),
        "xinclude": alert.format(include).encode(),
    }


async def _ends(service: Service) -> dict[str, str]:
    """Return how each message ended, by its id: one end, not two and not none."""
    ends: dict[str, str] = {}
    letters = (
        "SELECT message_id, cause FROM statesvc.dead_letter WHERE kind = 'message' AND cause <>"
        " 'rejected_member'"
    )
    for message_id, cause in await service.rows(letters):
        assert ends.setdefault(str(message_id), cause) is cause
    for message_id, outcome, events in await service.rows(
        "SELECT message_id, outcome, events FROM statesvc.message"
    ):
        end = (
            EMPTY
            if outcome == EMPTY
            else "no events"
            if not events
            else "1 event"
            if events == 1
            else f"{events} events"
        )
        assert ends.setdefault(str(message_id), end) is end
    return ends


async def _outcomes(
    service: Service, bodies: dict[str, bytes], *carrier_ids: str
) -> dict[str, str]:
    """Return how the bodies ended when UPS posted them; `carrier_ids` post them too, and
    theirs must end somehow.
    """
    queue, found = (
        [(carrier_id, name) for carrier_id in ("ups", *carrier_ids) for name in bodies],
        {},
    )

    async def client() -> None:
        while queue:
            carrier_id, name = queue.pop()
            async with asyncio.timeout(10):
                status, message_id = await post_webhook(service, carrier_id, bodies[name])
            assert status == 413 or 200 <= status < 300, (carrier_id, name, status)
            found[carrier_id, name] = message_id or str(status)

    await asyncio.gather(*(client() for _ in range(4)))
    await service.drained(30)
    ends = await _ends(service)
    assert {answer for answer in found.values() if len(answer) > 3} == set(ends)
    return {
        name: ends.get(answer, answer)
        for (carrier_id, name), answer in found.items()
        if carrier_id == "ups"
    }


async def _assert_unhurt(service: Service) -> None:
    assert [role.process.returncode for role in service.roles] == [None] * len(service.roles)
    for role in service.roles:
        log = role.log.read_text()
        assert "batch_abandoned" not in log
        assert "handler_failed" not in log
    assert (
        await service.value(
            "SELECT count(*) FROM statesvc.dead_letter WHERE cause IN ('worker_died',"
            " 'normalizer_failed')"
        )
        == 0
    )
    assert await service.value("SELECT coalesce(max(attempts), 0) FROM statesvc.message") <= 1
    status, _ = await service.webhook(
        "ups", ups_alert("1ZAFTERWARDS", "D/FS", day=4, minute=600).body
    )
    assert status == 200
    await service.drained()
    _, shipment = await service.get("/v1/shipments/ups/1ZAFTERWARDS")
    assert shipment["status"] == "delivered"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_invented_hostile_bodies_end_as_they_should_and_hurt_nobody(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    file = tmp_path / "1ZSECRETOFTHISMACHINE"
    file.write_text(file.name)
    bodies = {name: body for name, (body, _) in OURS.items()} | _reaching_for(file)
    service = await service_maker(tmp_path)
    async with running(service, "api", "worker"):
        found = await _outcomes(service, bodies)
        wrong = {
            name: end
            for name, end in found.items()
            if end not in (OURS[name][1] if name in OURS else {"refused_xml"})
        }
        assert wrong == {}
        for table in ("event", "shipment", "dead_letter"):
            texts = [f"%{file.name}%", f"%{file.name.encode().hex()}%"]
            assert (
                await service.value(
                    f"SELECT count(*) FROM statesvc.{table} t WHERE t::text LIKE ANY (%s)", texts
                )
                == 0
            )
        assert file.name not in "".join(role.log.read_text() for role in service.roles)
        await _assert_unhurt(service)


@needs_corpus
async def test_the_corpus_of_hostile_bodies_ends_as_its_index_says_and_hurts_nobody(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    bodies = {
        path.name: path.read_bytes() for path in sorted((CORPUS / "_synthetic_malformed").iterdir())
    }
    service = await service_maker(tmp_path)
    async with running(service, "api", "worker"):
        found = await _outcomes(
            service, bodies, *(carrier_id for carrier_id in CARRIERS if carrier_id != "ups")
        )
        wrong = {name: end for name, end in found.items() if end not in THEIRS.get(name, ELSEWHERE)}
        assert wrong == {}
        unknown = (
            "SELECT raw_type, raw_code FROM statesvc.dead_letter WHERE kind = 'code' AND carrier_id"
            " = 'ups'"
        )
        assert await service.rows(unknown) == [("Z", "Q9")]
        await _assert_unhurt(service)
