"""The samples of the document work as they stand."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from statesvc.http.introduction import TAGS
from tests.openapi_document import document
from tests.world.api import Api, Statement
from tests.world.programs import required

NUMBER: Final = "1ZTEST000300000011"
RUN: Final = ("get_shipment", "get_shipment_history", "list_shipments", "look_up_shipments")
LABELS: Final = ("curl", "Python", "Node")


def samples() -> Mapping[str, Mapping[str, str]]:
    """By operation and label."""
    return {
        call["operationId"]: {sample["label"]: sample["source"] for sample in call["x-codeSamples"]}
        for calls in document()["paths"].values()
        for call in calls.values()
    }


async def run(label: str, source: str, environment: Mapping[str, str], folder: Path) -> Any:
    match label:
        case "curl":
            command = ["sh", "-ec", f"{source} -sS --fail-with-body"]
            required("curl", "curl")
        case "Python":
            command = [sys.executable, "-c", source]
        case _:
            folder.joinpath("sample.mjs").write_text(source.replace("answer.status, ", ""), "utf-8")
            command = [required("node", "nodejs"), str(folder / "sample.mjs")]
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, (source, printed, errors)
    return orjson.loads(printed)


@pytest.mark.usefixtures("own_processes")
async def test_a_sample_answers_what_the_call_answers(
    api: Api, scan: Statement, tmp_path: Path
) -> None:
    await api.carriers.push(scan(NUMBER, None))
    environment = {"API": str(api.client.make_url("")).rstrip("/"), "KEY": await api.key("read")}
    written = samples()
    for name in RUN:
        said = [await run(label, written[name][label], environment, tmp_path) for label in LABELS]
        assert said[0] == said[1] == said[2]
        assert NUMBER in str(said[0]) or name == "look_up_shipments"


def test_every_call_has_samples_that_are_well_formed() -> None:
    for name, written in samples().items():
        assert "$API/" in written["curl"], name
        if "Python" in written:
            compile(written["Python"], name, "exec")


def test_every_part_of_the_page_has_its_place() -> None:
    tags = {call["tags"][0] for calls in document()["paths"].values() for call in calls.values()}
    assert tags <= set(TAGS)
