"""Names: each means one thing."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

REPEATED_MODULES: Final = {"__init__", "__main__", "kit", "models", "routes"}


def modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


def test_no_module_name_is_used_twice_in_the_service() -> None:
    counted = Counter(
        path.stem for path in modules("statesvc") if path.stem not in REPEATED_MODULES
    )
    assert {name for name, count in counted.items() if count > 1} == set()


def test_no_public_class_name_means_two_things() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in modules("statesvc", "events", "projections"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(ROOT)))
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}
