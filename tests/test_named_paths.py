"""Each path that a docstring, a comment or a statement's comment names is a file or a folder."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("statesvc", "events", "projections", "migrations", "deploy", "tests")
PATH: Final = re.compile(
    rf"(?<![\w/.:-])(?:{'|'.join(FOLDERS)}|docs|clients|examples|findings)/[\w./-]*\w"
)


def texts_of(source: Path) -> Iterator[str]:
    if not PATH.search(source.read_text("utf-8")):
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
        for path in PATH.findall(text)
    }
    assert sorted((source, path) for source, path in named if not (ROOT / path).exists()) == []
