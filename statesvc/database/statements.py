"""Splitting an SQL file into its statements, for those that may not share a transaction.

Knows PostgreSQL's quotes: '..', E'..', "..", $tag$..$tag$, -- and nested /* */ comments. Bodies in BEGIN ATOMIC .. END hold
semicolons without quotes and are refused: such a function belongs in a file that runs in one transaction.
"""

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<line_comment>   --[^\n]* )
    | (?P<block_comment>  /\* )
    | (?P<escape_string>  \b[eE]'(?:[^'\\]|\\.|'')*' )
    | (?P<string>         '(?:[^']|'')*' )
    | (?P<identifier>     "(?:[^"]|"")*" )
    | (?P<dollar>         (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$ )
    | (?P<end>            ; )
    | (?P<open>           ['"] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ATOMIC: Final = re.compile(r"\bBEGIN\s+ATOMIC\b", re.IGNORECASE)


class StatementError(ValueError):
    """The text can't be split; the message names the line."""


def split_statements(text: str) -> list[str]:
    """Return the statements without their semicolons; empty ones and lone comments are left out."""
    return [statement for piece in _pieces(text) if _says_something(statement := piece.strip())]


def _pieces(text: str) -> Iterator[str]:
    start = place = 0
    while (token := _TOKEN.search(text, place)) is not None:
        place = token.end()
        match token.lastgroup:
            case "end":
                yield text[start : token.start()]
                start = place
            case "block_comment":
                place = _end_of_comment(text, token.start())
            case "dollar" | "tag":
                place = _end_of_dollar(text, token)
            case "open":
                raise StatementError(f"line {_line(text, token.start())}: a quote is never closed")
            case _:
                pass
    yield text[start:]


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return start + mark.end()
    raise StatementError(f"line {_line(text, start)}: a comment is never closed")


def _end_of_dollar(text: str, token: re.Match[str]) -> int:
    quote = f"${token['tag']}$"
    end = text.find(quote, token.end())
    if end < 0:
        raise StatementError(f"line {_line(text, token.start())}: {quote} is never closed")
    return end + len(quote)


def _says_something(statement: str) -> bool:
    bare = re.sub(r"--[^\n]*|/\*.*?\*/", "", statement, flags=re.DOTALL).strip()
    if _ATOMIC.search(bare):
        raise StatementError(
            "BEGIN ATOMIC can't be split: move it to a file that runs in one transaction"
        )
    return bool(bare)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
