"""Names: each means one thing, is a word of the trade, and no package imports one that imports it."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp
import pytest

ROOT: Final = Path(__file__).parents[1]

REPEATED_MODULES: Final = {"__init__", "__main__", "models", "routes"}
CODE: Final = ("statesvc", "events", "projections", "migrations")
PROSE: Final = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs")

WORDS: Final = {
    "tell": r"told|tells?|telling",
    "look-out": r"look[-_ ]?outs?",
    "express": r"express",
    "beside": r"beside",
    "passage": r"passages?",
    "give_way": r"giv(?:e|es|ing)[-_ ]way",
    "breathe": r"breath(?:e|es|ing)?",
    "loud": r"loud(?:ly|er)?",
    "apart": r"apart",
    "companies": r"compan(?:y|ies)",
    "workshop": r"workshops?",
    "surroundings": r"surroundings?",
    "foundation": r"foundations?",
    "standing": r"standings?",
    "spine": r"spines?",
    "moment": r"moments?",
    "stretch": r"stretch(?:es|ed)?",
    "crew": r"crews?",
    "shelf": r"shel(?:f|ves)",
    "strain": r"strain(?:s|ed)?",
    "hindrance": r"hindrances?",
    "letter": r"letters?",
    "round": r"rounds?",
    "kept": r"kept",
    "frontier": r"frontiers?",
    "examination": r"examin(?:e|es|ed|ing|ation|ations)",
    "look": r"(?:a|the|this|that|each|every|one|no|first|second|last|next) look(?![-_ ]?outs?)",
    "mend": r"mend(?:s|ed|ing)?",
    "so many": r"so many",
    "somebody": r"some(?:body|one's turn)",
    "whoever": r"whoever",
}
"""Words that say too little to a stranger."""
ANY_WORD: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(WORDS.values())})(?![A-Za-z])", re.IGNORECASE)

RIGHT: Final = re.compile(
    r"dead[-_ ]?letter(?:s|ed|ing)?|(?:capital|small|one|two|three|same|first)[-_ ]letters?|letters? (?:and digits|at the end)"
    r"|round\(|round[-_ ]trips?|round[-_ ]robin|(?:dhl|sf|purolator|j&t)[-_ ]?express|expressconnect|0001_foundation|momentIndication",
    re.IGNORECASE,
)
"""Where those words are the trade's own, or a proper name."""
QUOTING: Final = re.compile(
    r"_(?:codes|texts)\.csv$|/fixtures/|/vendor/|\.(?:ttf|pdf|png)$|LICENSE|(?:cities|countries|regions|zones)\.csv$"
)
"""Files that quote what carriers print, and those of others."""
FROZEN: Final = "Tells apart the shipments of a number that is used again"
"""In the schema's version 1, which has landed and never changes, and in the declaration, which has to equal it word for word."""


def modules(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


def parted(text: str) -> str:
    """With blanks between the words of CamelCase and snake_case names."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", text)


def words_in(text: str) -> set[str]:
    """The listed words that a text uses."""
    text = parted(RIGHT.sub("", text))
    if not ANY_WORD.search(text):
        return set()
    return {name for name, pattern in WORDS.items() if re.search(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", text, re.IGNORECASE)}


def texts() -> Iterator[Path]:
    for package in CODE:
        yield from (
            path for path in sorted((ROOT / package).rglob("*")) if path.suffix in {".py", ".sql", ".html", ".json", ".csv", ".js", ".css"}
        )
    for name in PROSE:
        path = ROOT / name
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path] if path.is_file() else []
    yield ROOT / "Makefile"


def test_no_module_name_is_used_twice_in_the_service() -> None:
    counted = Counter(path.stem for path in modules("statesvc") if path.stem not in REPEATED_MODULES)
    assert {name for name, count in counted.items() if count > 1} == set()


def test_no_public_class_name_means_two_things() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in modules("statesvc", "events", "projections"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(ROOT)))
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}


def test_names_and_prose_use_words_of_the_trade() -> None:
    found: dict[str, list[str]] = {}
    for path in texts():
        name = path.relative_to(ROOT).as_posix()
        if not QUOTING.search(name):
            text = path.read_text("utf-8").replace(FROZEN, "") if name.startswith("events/schema/") else path.read_text("utf-8")
            used = words_in(f"{name}\n{text}")
            found |= {name: sorted(used)} if used else {}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class AlreadyTold", {"tell"}),
        ("dead_letters, a DeadLetter, round(x, 2) in one round trip by DHL Express", set()),
        ("whose_turn: the round of a letter", {"letter", "round"}),
        ("foretells, expression, background, Expressed, standalone, upstanding", set()),
        ("look_out, the lookout, LookOut", {"look-out"}),
    ],
)
def test_a_listed_word_is_found_in_names_and_in_prose(text: str, words: set[str]) -> None:
    assert words_in(text) == words


def circles(graph: grimp.ImportGraph, package: str) -> list[list[str]]:
    """Of the packages and modules right under one package: every set that import one another."""
    children = sorted(graph.find_children(package))
    downstream = {
        child: {
            other for other in children if other != child and graph.direct_import_exists(importer=child, imported=other, as_packages=True)
        }
        for child in children
    }
    reached = {child: _reachable(child, downstream) for child in children}
    sets = {frozenset(other for other in children if other in reached[child] and child in reached[other]) for child in children}
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


def test_a_circle_is_found_between_packages_and_between_modules() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a.b.x", "a.c.y"), ("a.c.z", "a.d"), ("a.d", "a.b.w"), ("a.b.w", "a.b.v")):
        graph.add_import(importer=importer, imported=imported)
    for package in ("a", "a.b", "a.c"):
        graph.add_module(package)
    assert circles(graph, "a") == [["a.b", "a.c", "a.d"]]
    assert circles(graph, "a.b") == []
