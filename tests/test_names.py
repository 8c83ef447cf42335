"""Names: each means one thing. Imports: no package imports one that imports it."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp

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


def circles(graph: grimp.ImportGraph, package: str) -> list[list[str]]:
    """Return every set that import one another of the packages and modules right under one
    package.
    """
    children = sorted(graph.find_children(package))
    downstream = {
        child: {
            other
            for other in children
            if other != child
            and graph.direct_import_exists(importer=child, imported=other, as_packages=True)
        }
        for child in children
    }
    reached = {child: _reachable(child, downstream) for child in children}
    sets = {
        frozenset(
            other for other in children if other in reached[child] and child in reached[other]
        )
        for child in children
    }
    return sorted(sorted(each) for each in sets if len(each) > 1)


def _reachable(start: str, downstream: dict[str, set[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        for following in downstream[waiting.pop()] - found:
            found.add(following)
            waiting.append(following)
    return found


def test_nothing_imports_what_imports_it_at_any_depth() -> None:
    # imports for the type checker count as well
    graph = grimp.build_graph("statesvc", "events", "projections", "migrations", cache_dir=None)
    packages = [module for module in sorted(graph.modules) if graph.find_children(module)]
    found = [circle for package in packages for circle in circles(graph, package)]
    assert found == []
