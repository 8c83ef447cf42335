"""The add-on archive is off while a month is archived: an answer is complete or there is none."""

from dataclasses import replace
from typing import Any

import pytest

from statesvc.api.service_status import read_status
from statesvc.roles.supervisor.preparation import require_retention
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.service_settings import read_settings
from tests.world.log_archivist import Archivist

PATH = "/v1/shipments/ups/1Z0001"
MISSING = "1 months of the log and 0 days of bodies are archived"


@pytest.fixture
async def archived(
    two_months: None,  # noqa: ARG001 - there before anybody connects
    archivist: Archivist,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await archivist.archived()
    monkeypatch.setenv("STATESVC_ADDONS", "console")


async def ask(api: Any, method: str, path: str, **request: Any) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {await api.key('admin read audit')}"}
    async with api.client.request(method, path, headers=headers, **request) as response:
        return response.status, await response.json()


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize(
    ("method", "path", "request_"),
    [
        ("GET", f"{PATH}/history", {}),
        ("GET", f"{PATH}/history", {"params": {"as_of": "2040-01-01T00:00:00Z"}}),
        ("GET", f"{PATH}/audit", {}),
        ("GET", "/v1/feed", {}),
        ("POST", f"{PATH}/erase", {"json": {"why": "asked to"}}),
        (
            "POST",
            "/v1/legal-holds",
            {"json": {"carrier_id": "ups", "tracking_number": "1Z0001", "why": "a case"}},
        ),
    ],
)
async def test_what_reaches_an_archived_month_is_refused_and_never_shorter(
    api: Any, method: str, path: str, request_: dict[str, Any]
) -> None:
    status, problem = await ask(api, method, path, **request_)
    assert (status, problem["code"]) == (503, "addon_missing"), problem
    assert "the add-on archive, which STATESVC_ADDONS leaves out" in problem["detail"]


@pytest.mark.usefixtures("archived")
async def test_what_is_in_the_database_is_answered_and_status_says_what_is_off(
    archivist: Archivist, api: Any
) -> None:
    status, _ = await ask(api, "GET", "/v1/shipments/ups/1Z0007/history")
    assert status == 200
    found = await read_status(archivist.connection)
    assert any(one.about == "add-ons" and MISSING in one.text for one in found.troubles)


@pytest.mark.usefixtures("archived")
async def test_up_does_not_start_without_the_job_that_keeps_a_bound(archivist: Archivist) -> None:
    settings = read_settings()
    await require_retention(archivist.connection, settings)
    bounded = replace(settings, archive=settings.archive.model_copy(update={"log_hot_months": 1}))
    with pytest.raises(SettingError, match=r"LOG_HOT_MONTHS is 1: .* needs the add-on archive"):
        await require_retention(archivist.connection, bounded)
