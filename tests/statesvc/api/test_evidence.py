"""Evidence over HTTP, in each of its forms."""

import json
from typing import Any

import pytest

from events.checkpoint import VerifierKey
from events.vocabulary import Status
from statesvc.api.evidence_calls import _preferred
from statesvc.evidence.check_bundle import check
from tests.world.story import Story

PATH = "/v1/shipments/ups/5/evidence"


async def _raw(api: Any, accept: str, scopes: str = "audit pii") -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {await api.key(scopes)}", "Accept": accept}
    async with api.client.get(PATH, headers=headers) as response:
        return response.status, response.content_type, await response.read()


@pytest.mark.usefixtures("own_processes")
async def test_the_evidence_verifies_and_comes_in_three_forms(api: Any, scan: Any) -> None:
    await api.carriers.say(scan("5", Status.DELIVERED, signed_by="J. <b>Doe</b>"))
    assert (await _raw(api, "*/*"))[0] == 409, "nothing is sealed yet"
    await Story(api.connection, api.keyring).seal()
    status, kind, document = await _raw(api, "*/*")
    bundle = json.loads(document)
    assert (status, kind, check(document, [VerifierKey.parse(key) for key in bundle["log"]["keys"]])) == (200, "application/json", [])
    assert bundle["shipment"]["signed_by"] == "J. <b>Doe</b>"
    status, kind, html = await _raw(api, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
    assert (status, kind) == (200, "text/html")
    assert b"J. &lt;b&gt;Doe&lt;/b&gt;" in html
    status, kind, pdf = await _raw(api, "application/pdf")
    assert (status, kind, pdf[:5]) == (200, "application/pdf", b"%PDF-")
    _, _, redacted = await _raw(api, "application/json", scopes="audit")
    assert b"Doe" not in redacted
    recorded = "SELECT count(*) FROM statesvc.action WHERE verb = 'read_personal'"
    assert await (await api.connection.execute(recorded.encode())).fetchone() == (1,)
    assert (await api.get("/v1/shipments/ups/6/evidence", scopes="audit")).status == 404


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("image/png", "application/json"),
        ("text/html;q=0.2, application/pdf;q=0.9", "application/pdf"),
        ("application/pdf;q=0, text/html;q=wrong", "application/json"),
        ("application/pdf, text/html", "application/pdf"),
    ],
)
def test_the_form_is_the_one_that_the_caller_prefers(accept: str, kind: str) -> None:
    assert _preferred(accept) == kind
