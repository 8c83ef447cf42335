"""Add-ons join at seams: what each declares is there, and what is off answers with its name."""

from pathlib import Path
from pkgutil import resolve_name

import pytest
from aiohttp.test_utils import TestClient, TestServer

from statesvc import seams
from statesvc.addons import ADDONS
from statesvc.addons.archive import file_queries
from statesvc.addons.brokers.table import BY_SCHEME
from statesvc.api.routes import refusing_routes
from statesvc.cli import main
from statesvc.cli.command_table import commands
from statesvc.http.app import build_app
from statesvc.log.archived_files import ArchivedFiles
from statesvc.subscriptions.url import UrlRefusedError, checked_url

READS_ARCHIVES: ArchivedFiles = file_queries


@pytest.mark.parametrize("name", ADDONS)
def test_each_part_that_an_addon_declares_is_there(name: str) -> None:
    addon = seams.every_addon()[name]
    single = (getattr(addon, field) for field in addon.__slots__)
    named = (one for field in ("jobs", "computations") for one in getattr(addon, field).values())
    parts = [part for part in single if isinstance(part, str) and part]
    for part in (*parts, *named):
        assert part.startswith(f"statesvc.addons.{name}.")
        resolve_name(part)
    for rows in addon.commands.values():
        for row in rows.values():
            resolve_name(row.module)


def test_schemes_and_paths_are_those_that_the_addons_serve() -> None:
    addons = seams.every_addon()
    assert set(addons["brokers"].schemes) == set(BY_SCHEME)
    for addon in addons.values():
        served = resolve_name(addon.operations) if addon.operations else ()
        for operation in served:
            path = operation.where.partition(" ")[2]
            assert any(path.startswith(own.partition("/{rest")[0]) for own in addon.paths)


def test_every_folder_of_addons_is_listed() -> None:
    folder = Path(seams.__file__).parent / "addons"
    assert set(ADDONS) == {path.parent.name for path in folder.glob("*/__init__.py")}


def test_a_misspelt_addon_is_refused_with_a_proposal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATESVC_ADDONS", "console,evidense")
    assert main(["status"]) == 2
    assert capsys.readouterr().err == (
        "statesvc: STATESVC_ADDONS names evidense, which is no add-on: did you mean evidence?\n"
    )


@pytest.mark.parametrize("chosen", ["", "console, archive"])
def test_a_command_of_an_addon_that_is_off_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chosen: str
) -> None:
    monkeypatch.setenv("STATESVC_ADDONS", chosen)
    assert "evidence" not in commands()
    assert main(["evidence", "ups", "1Z0001"]) == 2
    assert (
        capsys.readouterr().err
        == "statesvc: the command evidence needs the add-on evidence, which STATESVC_ADDONS leaves"
        " out here\n"
    )


async def test_a_target_of_an_addon_that_is_off_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATESVC_ADDONS", "archive")
    with pytest.raises(UrlRefusedError, match=r"kafka:// needs the add-on brokers"):
        await checked_url("kafka://broker.example/topic", ())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/console", "console"),
        ("/console/carriers/ups", "console"),
        ("/portal/subscriptions/1", "console"),
        ("/v1/shipments/ups/1Z0001/evidence", "evidence"),
        ("/v1/expectations/ups", "expectations"),
        ("/v1/reports/promises/late", "expectations"),
        ("/v1/shipments/ups/1Z0001/awaited", "expectations"),
        ("/v1/carriers/ups/mappings/7/renormalize", "mappings"),
        ("/v1/stream", "stream"),
        ("/v1/stream/tickets", "stream"),
    ],
)
async def test_a_call_of_an_addon_that_is_off_names_it(
    monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    monkeypatch.setenv("STATESVC_ADDONS", "")
    app = build_app(refusing_routes(), keys=None)
    async with TestClient(TestServer(app)) as client, client.post(path) as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (503, "addon_missing")
    assert f"the add-on {name}, which STATESVC_ADDONS leaves out" in problem["detail"]


async def test_a_removed_call_names_what_to_do_instead() -> None:
    app = build_app(refusing_routes(), keys=None)
    async with (
        TestClient(TestServer(app)) as client,
        client.get("/v1/carriers/ups/mappings/export") as answer,
    ):
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (404, "not_found")
    assert "add a row to the carrier's table by hand" in problem["detail"]
