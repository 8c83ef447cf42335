"""Evidence over HTTP, in each of its forms."""

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest

from events.merkle.checkpoint import VerifierKey
from events.vocabulary import Status
from statesvc.addons.evidence.check_bundle import check
from statesvc.addons.evidence.merchant_statement import statement_commitment
from statesvc.http.document_forms import FORMS, preferred
from tests.world.log_builder import LogBuilder

PATH = "/v1/shipments/ups/5/evidence"


async def _raw(api: Any, accept: str, scopes: str = "audit pii") -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {await api.key(scopes)}", "Accept": accept}
    async with api.client.get(PATH, headers=headers) as response:
        if response.status == 200:
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith(
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
            )
            assert ("sandbox" in policy, "allow-scripts" in policy) == (True, False)
        return response.status, response.content_type, await response.read()


@pytest.mark.usefixtures("own_processes")
async def test_the_evidence_verifies_and_comes_in_three_forms_of_which_a_browser_runs_nothing(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("5", Status.DELIVERED, signed_by="J. <b>Doe</b>"))
    assert (await _raw(api, "*/*"))[0] == 409, "nothing is sealed yet"
    await LogBuilder(api.connection, api.keyring).seal()
    status, kind, document = await _raw(api, "*/*")
    bundle = json.loads(document)
    assert (
        status,
        kind,
        check(document, [VerifierKey.parse(key) for key in bundle["log"]["keys"]]),
    ) == (200, "application/json", [])
    assert bundle["shipment"]["signed_by"] == "J. <b>Doe</b>"
    status, kind, html = await _raw(api, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
    assert (status, kind) == (200, "text/html")
    assert b"J. &lt;b&gt;Doe&lt;/b&gt;" in html
    status, kind, pdf = await _raw(api, "application/pdf")
    assert (status, kind, pdf[:5]) == (200, "application/pdf", b"%PDF-")
    _, _, redacted = await _raw(api, "application/json", scopes="audit")
    assert b"Doe<" not in redacted
    recorded = "SELECT count(*) FROM statesvc.action WHERE verb = 'read_personal'"
    assert await (await api.connection.execute(recorded.encode())).fetchone() == (1,)
    assert (await api.get("/v1/shipments/ups/6/evidence", scopes="audit")).status == 404


@pytest.mark.usefixtures("own_processes")
async def test_evidence_for_a_case_is_on_record_and_nothing_of_the_statement_is(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("5", Status.DELIVERED, signed_by="J. Doe"))
    await LogBuilder(api.connection, api.keyring).seal()
    stated = {
        "case": "dp_7",
        "reason_code": "13.1",
        "ship_to": {"name": "Erika Mustermann", "city": "springfield", "country": "US"},
    }
    headers = {"Authorization": f"Bearer {await api.key('audit pii')}", "Accept": "application/zip"}
    async with api.client.post(PATH, json=stated, headers=headers) as response:
        content = await response.read()
        assert (response.status, response.content_type) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        bundle = json.loads(archive.read("evidence.json"))
    assert bundle["stated"]["statement"] == stated
    entries = await (
        await api.connection.execute(
            "SELECT canonical FROM statesvc.action WHERE verb = 'make_evidence'"
        )
    ).fetchall()
    ((canonical,),) = entries
    details = json.loads(canonical)["details"]
    assert details == {
        "case": "dp_7",
        "reason_code": "13.1",
        "form": "application/zip",
        "sha256": hashlib.sha256(content).hexdigest(),
        "statement_commitment": statement_commitment(bundle["stated"]),
    }
    assert b"Mustermann" not in canonical
    await LogBuilder(api.connection, api.keyring).seal()
    _, _, again = await _raw(api, "application/json")
    assert "make_evidence" not in again.decode(), "who asks for evidence is not part of it"


async def test_a_statement_that_does_not_fit_is_refused_without_repeating_it(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("5", Status.DELIVERED))
    headers = {"Authorization": f"Bearer {await api.key('audit')}"}
    async with api.client.post(
        PATH, json={"case": "Erika Mustermann"}, headers=headers
    ) as response:
        refused = await response.text()
        assert response.status == 422
    assert "case" in refused
    assert "Mustermann" not in refused


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
    assert (preferred(accept, FORMS.values()) or FORMS[".json"]) == kind


async def test_of_a_number_that_was_used_twice_one_says_which_parcel_is_meant(
    api: Any, scan: Any
) -> None:
    for minutes, discriminator in enumerate(("old", "")):
        await api.carriers.push(
            scan("5", Status.DELIVERED, discriminator=discriminator, minutes=minutes)
        )
    await LogBuilder(api.connection, api.keyring).seal()
    refused = await api.get(PATH, scopes="audit")
    assert (refused.status, refused.body["code"]) == (409, "conflict")
    assert "`old`: delivered, last heard of on 2026-03-01" in refused.body["detail"]
    for discriminator, other in (("old", ""), ("", "old")):
        found = (await api.get(f"{PATH}?discriminator={discriminator}", scopes="audit")).body
        assert (
            found["shipment"]["discriminator"],
            [each["discriminator"] for each in found["others"]],
        ) == (discriminator, [other])
        (notice,) = found["page_one"]["notices"]
        assert notice.startswith("This number was used twice; this is the parcel of 1 Mar 2026")
        assert "Not part of this document: the one that is delivered, last heard of on" in notice
        assert ("which the carrier calls old" in notice) is bool(discriminator)
