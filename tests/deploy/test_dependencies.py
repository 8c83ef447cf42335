"""The packages that statesvc runs with: pinned, licensed, listed on a page and in a bill of materials that keeps to its schema."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from deploy.packaging.bill_of_materials import InvalidBillError, bill_of_materials, validate
from deploy.packaging.dependencies import (
    CONSTRAINTS,
    PAGE,
    Dependency,
    DependencyError,
    dependencies,
    page,
    pinned,
    runtime_dependencies,
)

BUILT_AT: Final = datetime(2026, 11, 26, tzinfo=UTC)


@pytest.fixture(scope="module")
def listed() -> list[Dependency]:
    return runtime_dependencies()


def test_the_page_lists_them(listed: list[Dependency]) -> None:
    text = PAGE.read_text("utf-8")
    assert page(text, listed) == text, "run python -m deploy.packaging.dependencies"


def test_what_an_extra_brings_is_listed_with_it_and_what_is_always_there_without(
    listed: list[Dependency],
) -> None:
    extras = {each.name: each.extras for each in listed}
    assert extras["psycopg-binary"] == extras["aiohttp"] == frozenset()
    assert extras["typst"] == {"pdf"}
    assert extras["aio-pika"] == {"rabbitmq", "shovel"}
    assert "pytest" not in extras


def test_a_package_without_its_pin_is_refused() -> None:
    project = {"dependencies": ["orjson"], "optional-dependencies": {}}
    with pytest.raises(DependencyError, match=r"not pinned so in constraints\.txt: orjson"):
        dependencies(project, {"orjson": "0.0.1"})
    (found,) = dependencies(project, pinned(CONSTRAINTS.read_text("utf-8")))
    assert (found.name, found.extras) == ("orjson", frozenset())


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(DependencyError, match="statesvc-none is not installed"):
        dependencies({"dependencies": [], "optional-dependencies": {"x": ["statesvc-none"]}}, {})


def test_the_bill_of_materials_names_each_with_its_licence_and_is_the_same_every_time(
    tmp_path: Path, listed: list[Dependency]
) -> None:
    wheel = tmp_path / "statesvc.whl"
    wheel.write_bytes(b"the wheel")
    text = bill_of_materials(wheel, "0.1.0", listed, BUILT_AT)
    assert bill_of_materials(wheel, "0.1.0", listed[::-1], BUILT_AT) == text
    bill = json.loads(text)
    assert {part["purl"] for part in bill["components"]} == {
        f"pkg:pypi/{each.name}@{each.version}" for each in listed
    }
    assert all(part["licenses"] for part in bill["components"])
    needed = {part["ref"]: part.get("dependsOn", []) for part in bill["dependencies"]}
    assert any(
        ref.startswith("psycopg-pool==")
        for ref in needed[next(ref for ref in needed if ref.startswith("psycopg=="))]
    )


def test_a_bill_that_breaks_its_schema_is_refused() -> None:
    with pytest.raises(InvalidBillError):
        validate(
            '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"name": "without a type"}]}'
        )
