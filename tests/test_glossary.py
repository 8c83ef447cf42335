"""Public names keep to docs/glossary.md: a word of it means one thing, wherever it stands."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
GLOSSARY: Final = ROOT / "docs" / "glossary.md"

HOMES: Final = {
    "bury": ("statesvc/queue", "statesvc/notifier"),
    "claim": ("statesvc/queue", "statesvc/notifier"),
    "fold": ("projections", "statesvc/shipments/rebuild"),
    "hold": (
        # the kill switch
        "statesvc/reading",
        "statesvc/api/rollout_operations.py",
        "statesvc/api/operating_words.py",
        "statesvc/api/service_status.py",
        "statesvc/api/status_facts.py",
        "statesvc/health",
        "statesvc/addons/console",
        # the legal hold
        "statesvc/bodies",
        "statesvc/addons/archive",
        "statesvc/privacy",
        "statesvc/api/erasure_words.py",
        "statesvc/api/legal_hold_operations.py",
        "statesvc/api/erasure_words.py",
    ),
    "lease": ("statesvc/queue", "statesvc/worker", "statesvc/notifier"),
    "outbox": ("statesvc/append", "statesvc/notifier", "statesvc/queue", "statesvc/maintenance"),
    "place": (
        # where something happened; a position in a list or in the log is a position
        "events",
        "statesvc/shipments",
        "statesvc/addons/evidence",
        "statesvc/addons/console",
        "statesvc/log/entry_documents.py",
        # and to place a hold
        "statesvc/bodies/legal_holds.py",
        "statesvc/api/legal_hold_operations.py",
    ),
    "quota": ("statesvc/queue", "statesvc/api", "statesvc/addons/console", "statesvc/cli"),
    "reading": (
        "events",
        "statesvc/reading",
        "statesvc/repair",
        "statesvc/addons/mappings",
        "statesvc/api/rollout_models.py",
        "statesvc/api/rollout_operations.py",
        "statesvc/worker",
    ),
    "rollout": (
        "statesvc/reading",
        "statesvc/api",
        "statesvc/cli",
        "statesvc/addons/console",
        "statesvc/health",
    ),
}
"""Words that once had several meanings, and where public names may use them."""

RETIRED: Final = {
    "allotment": "quota",
    "dial": "rollout",
    "disclosure": "personal data request",
    "elsewhere": "redirect",
    "outlook": "next claim",
    "tally": "counts",
    "tick": "batch stamp",
    "trouble": "finding",
    "wish": "input",
}
"""Words that no public name bears any more, and what it is called instead."""


@cache
def public_names() -> tuple[tuple[str, str], ...]:
    """Return each public class, function and module with the file that has it."""
    return tuple(_public_names())


def _public_names() -> Iterator[tuple[str, str]]:
    for package in ("statesvc", "events", "projections"):
        for path in sorted((ROOT / package).rglob("*.py")):
            where = str(path.relative_to(ROOT))
            yield path.stem, where
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(
                    node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
                ) and not node.name.startswith("_"):
                    yield node.name, where


def words(name: str) -> set[str]:
    """Split a name of either case into its words."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_a_word_of_the_glossary_means_one_thing() -> None:
    strays = [
        (name, where)
        for name, where in public_names()
        for word in words(name) & HOMES.keys()
        if not where.startswith(HOMES[word])
    ]
    assert strays == []


def test_no_name_bears_a_retired_word() -> None:
    assert [(name, where) for name, where in public_names() if words(name) & RETIRED.keys()] == []


def test_the_words_that_are_kept_apart_are_in_the_glossary() -> None:
    defined = {
        word.strip()
        for line in re.findall(r"^\| ([a-z ,-]+) \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)
        for word in line.split(",")
    }
    assert HOMES.keys() - defined == set()
