"""Redaction: whatever is pushed, no log line, span, metric or error answer holds a name, street,
number or secret of it.

Logs are at DEBUG, every webhook is traced, spans and metrics go to a collector, and what fails does
so with the body in the error's text.
"""

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from events.carriers import CARRIERS
from tests.acceptance.corpus_folder import CORPUS
from tests.acceptance.leaking import FORCED, FORCED_APPEND
from tests.acceptance.personal_values import distinctive, excerpt, leaks, values_of
from tests.acceptance.processes import BOOTSTRAP_KEY, MASTER_KEY, UPS_SECRET, Service
from tests.acceptance.service_maker import ServiceMaker
from tests.acceptance.stories import ups_alert
from tests.world.collector import Collector, collecting, settings_for
from tests.world.waiting import until

FIXTURES: Final = Path(__file__).parents[1] / "events" / "carriers" / "fixtures"
PERSON: Final = {
    "name": "Quentin Maurer-Lindholm",
    "street": "17 Rosenkavalier Crescent",
    "phone": "+1 (555) 013-7788",
    "email": "quentin.lindholm@mailbox.example",
    "postalCode": "94117-2231",
    "trackingNumber": "1Z5338FF0107231059",
    "secret": "xoxb-77aa-quentins-token",
}
LARGEST: Final = 400_000
"""Bytes. Larger bodies are refused or too complex, and are tried elsewhere."""
DEBUG: Final = {"STATESVC_LOG_LEVEL": "debug", "STATESVC_LOG_FORMAT": "json"}


class LeakingService(Service):
    launcher: ClassVar[str] = "tests.acceptance.leaking"


def _hostile() -> Iterator[bytes]:
    """Yield bodies that fail, each with all of one person in it."""
    alert = json.loads(ups_alert(PERSON["trackingNumber"], "D/FS", day=3, minute=600).body)
    full = json.dumps({**alert, **PERSON}).encode()
    yield full[:-20]
    yield full + b"garbage"
    yield full.replace(b"{", b"[", 1)
    yield full.decode().encode("utf-16")
    yield full.replace(b'"street"', b'"trackingNumber"')
    yield json.dumps({**alert, PERSON["email"]: PERSON, "activityStatus": PERSON["name"]}).encode()
    yield json.dumps(
        {**alert, "localActivityDate": PERSON["phone"], "gmtActivityDate": PERSON["email"]}
    ).encode()
    yield json.dumps(
        {**alert, "activityStatus": {"type": PERSON["email"], "code": PERSON["trackingNumber"]}}
    ).encode()
    yield json.dumps({"data": [PERSON] * 50}).encode()
    yield (
        b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><TrackResponse><Name>"
        + PERSON["name"].encode()
        + b"</Name></TrackResponse>"
    )
    yield b"<TrackResponse><Street>" + PERSON["street"].encode()
    yield json.dumps({**alert, **PERSON, "note": FORCED.decode()}).encode()
    yield json.dumps(
        {**alert, **PERSON, "trackingNumber": "1Z5338FF0107231060", "receivedBy": FORCED_APPEND}
    ).encode()


def _malformed() -> Iterator[bytes]:
    """Yield requests that are no HTTP, or none of ours."""
    said = " ".join(PERSON.values()).encode()
    yield b"GET /" + said + b" HTTP/9.9\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nHost: x\r\nBad Header " + said + b"\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff" + said + b"\r\n\r\n"
    yield (
        b"POST /v1/webhooks/ups HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + said
        + b"\r\n"
    )
    yield b"GET http://[::" + said.split()[0] + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nHost: x\r\nX: " + said * 100 + b"\r\n\r\n"
    yield said + b"\r\n\r\n"


def _fixtures() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.rglob("*")):
        if (
            path.is_file()
            and path.suffix in {".json", ".xml", ".jsonld"}
            and path.parent.name in CARRIERS
        ):
            yield path.parent.name, path.read_bytes()


def _corpus() -> Iterator[tuple[str, bytes]]:
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file() and path.parent.name in CARRIERS:
            yield path.parent.name, path.read_bytes()
    hostile = CORPUS / "_synthetic_malformed"
    if hostile.is_dir():
        for path in sorted(hostile.iterdir()):
            yield from (
                (carrier_id, path.read_bytes()) for carrier_id in ("ups", "fedex", "dhl_unified")
            )


async def _push(service: Service, bodies: list[tuple[str, bytes]], answers: list[str]) -> None:
    queue = list(bodies)

    async def client() -> None:
        while queue:
            carrier_id, body = queue.pop()
            path = f"{service.api.url}/v1/webhooks/{carrier_id}"
            async with service.session.post(
                path, data=body, headers={"User-Agent": PERSON["email"]}
            ) as answer:
                answers.append(await answer.text())

    await asyncio.gather(*(client() for _ in range(4)))


def _raw(port: int, request: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(5)
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(65_536).decode("utf-8", "replace")


async def _wrong_calls(service: Service, answers: list[str]) -> None:
    """Make calls that are refused, with the person in path, query, header and body."""
    number, mail = PERSON["trackingNumber"], PERSON["email"]
    calls: list[tuple[str, str, Any, dict[str, str]]] = [
        ("GET", f"/v1/shipments/ups/{mail}", None, {}),
        ("GET", f"/v1/shipments/{mail}/{number}/audit", None, {}),
        ("GET", f"/v1/shipments?tracking_number={number}&{mail}=1", None, {}),
        ("GET", f"/v1/shipments?cursor={PERSON['name']}", None, {}),
        ("GET", "/v1/shipments", None, {"Authorization": f"Bearer {PERSON['secret']}"}),
        (
            "POST",
            "/v1/subscriptions",
            {"url": f"https://{PERSON['secret']}:x@127.0.0.1/{mail}", "carriers": [PERSON["name"]]},
            {},
        ),
        ("POST", "/v1/events", PERSON, {}),
        (
            "POST",
            "/v1/events",
            {**PERSON, "event_id": "e", "tracking_number": PERSON["name"] * 50},
            {},
        ),
        ("POST", f"/v1/webhooks/{mail}", PERSON, {}),
        ("PUT", "/v1/rollouts/ups", {"candidate": PERSON["name"], "why": mail}, {}),
        ("DELETE", f"/{number}", None, {}),
    ]
    for method, path, body, headers in calls:
        async with service.session.request(
            method, service.api.url + path, json=body, headers=headers
        ) as answer:
            if answer.status >= 400:
                answers.append(await answer.text())
    answers += [
        await asyncio.to_thread(_raw, service.api.port, request) for request in _malformed()
    ]


async def _heard(service: Service, collector: Collector, answers: list[str]) -> dict[str, str]:
    """Return everything that came out, by where."""
    metrics = []
    for role in service.roles:
        async with service.session.get(role.metrics_url) as answer:
            metrics.append(await answer.text())
    texts = await service.rows("SELECT coalesce(detail, '') FROM statesvc.dead_letter")
    return {
        "logs": "\n".join(role.log.read_text("utf-8", "replace") for role in service.roles),
        "spans and metrics by OTLP": "\n".join(
            body.decode("utf-8", "replace") for body in collector.bodies
        ),
        "metrics": "\n".join(metrics),
        "error answers": "\n".join(answers),
        "what dead letters say": "\n".join(text for (text,) in texts),
    }


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_nothing_personal_of_any_body_leaves(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    bodies = [*_fixtures(), *_corpus(), *(("ups", body) for body in _hostile())]
    bodies = [
        (carrier_id, distinctive(body)) for carrier_id, body in bodies if len(body) <= LARGEST
    ]
    values = {
        value.casefold() for value in (*PERSON.values(), UPS_SECRET, BOOTSTRAP_KEY, MASTER_KEY)
    }
    for _, body in bodies:
        values |= values_of(body)
    answers: list[str] = []
    async with (
        collecting() as collector,
        await service_maker(
            tmp_path, {**settings_for(collector), **DEBUG}, kind=LeakingService
        ) as service,
    ):
        await service.start("api", "worker", "notifier", "sealer")
        subscription = json.dumps(
            {"url": f"{collector.url}/notify?token={PERSON['secret']}", "coalesce": False}
        )
        status, _ = await service.post(
            "/v1/subscriptions", subscription, **{"Content-Type": "application/json"}
        )
        assert status == 201
        await _push(service, bodies, answers)
        await _wrong_calls(service, answers)
        await service.drained()
        await until(lambda: collector.notified and [*collector.named("statesvc.deliver")])
        heard = await _heard(service, collector, answers)
    assert "RuntimeError" in heard["what dead letters say"], "what was to fail did"
    assert "InvalidTextRepresentation" in heard["logs"]
    assert '"level":"error"' not in service.roles[0].log.read_text(), (
        "what anyone may send is no error of ours"
    )
    found = {
        where: {value: excerpt(value, text) for value in leaks(values, text)}
        for where, text in heard.items()
    }
    assert len(values) > 300
    assert {where: some for where, some in found.items() if some} == {}
