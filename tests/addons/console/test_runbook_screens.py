"""The runbook in the console."""

import re

from statesvc.runbook import INDEX, pages
from tests.world.console import ConsoleClient


async def test_every_page_is_shown_and_leads_to_pages_that_there_are(
    console: ConsoleClient,
) -> None:
    await console.log_in("ops")
    for name in pages():
        response = await console.get(
            "/console/runbook" if name == INDEX else f"/console/runbook/{name}"
        )
        text = await response.text()
        assert response.status == 200, name
        body = text.partition('<div class="prose">')[2]
        assert "style=" not in body
        assert "&lt;!--" not in body
        assert "<script" not in body.partition("</main>")[0]
        linked = set(re.findall(r'href="/console/runbook/(\w+)', body))
        assert linked <= set(pages()), name


async def test_a_trouble_leads_to_its_page(console: ConsoleClient) -> None:
    await console.log_in("ops")
    assert 'href="/console/runbook/RoleDown"' in await (await console.get("/console")).text()
    assert "A role does not run" in await console.text("/console/runbook/RoleDown")


async def test_a_page_that_there_is_not_is_said_to_be_none(console: ConsoleClient) -> None:
    await console.log_in("ops")
    missing = await console.get("/console/runbook/Nothing")
    assert (missing.status, missing.content_type) == (404, "text/html")
