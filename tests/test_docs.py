"""The pages, docstrings and comments name what exists: paths of the tree, links, tables made by the code, and the walk through the house."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from events.vocabulary import Status
from tests.authentication_page import table, written
from tests.lifecycle_page import PAGE, page

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)

PATH: Final = re.compile(r"`((?:statesvc|events|projections|migrations|tests|docs)/[\w./-]*)`")
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of headings."""
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(without_code(text))
    }


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            yield link


def test_a_page_names_paths_and_links_that_exist() -> None:
    for name in PAGES:
        page = ROOT / name
        assert [
            path for path in PATH.findall(page.read_text("utf-8")) if not (ROOT / path).exists()
        ] == [], name
        assert list(broken_links(page)) == [], name


def test_decision_records_are_numbered_without_gaps_and_say_context_decision_and_cost() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    for number, record in enumerate(records, 1):
        text = record.read_text("utf-8")
        assert record.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number}. ")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Cost"]
        assert len(text.splitlines()) <= 60


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.lifecycle_page"


def test_the_page_says_what_every_status_means() -> None:
    written = page().partition("## Moves")[0]
    assert [status.value for status in Status if f"`{status.value}`: " not in written] == []


def test_the_page_has_the_table_of_the_carriers() -> None:
    assert written() == table(), "python -m tests.authentication_page --write"


FOLDERS: Final = ("statesvc", "events", "projections", "migrations", "deploy", "tests")
NAMED_PATH: Final = re.compile(
    rf"(?<![\w/.:-])(?:{'|'.join(FOLDERS)}|docs|clients|examples|findings)/[\w./-]*\w"
)


def texts_of(source: Path) -> Iterator[str]:
    if not NAMED_PATH.search(source.read_text("utf-8")):
        return
    if source.suffix == ".sql":
        yield from (line.partition("--")[2] for line in source.read_text("utf-8").splitlines())
        return
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield docstring
    with source.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.string


def test_each_path_in_a_docstring_or_comment_exists() -> None:
    sources = (
        source
        for folder in FOLDERS
        for pattern in ("*.py", "*.sql")
        for source in (ROOT / folder).rglob(pattern)
    )
    named = {
        (str(source.relative_to(ROOT)), path)
        for source in sources
        for text in texts_of(source)
        for path in NAMED_PATH.findall(text)
    }
    assert sorted((source, path) for source, path in named if not (ROOT / path).exists()) == []
