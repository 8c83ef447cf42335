"""The structure of a body without its values: member and element names, brackets, and end. Pure.

It helps to find out why a message cannot be read without revealing personal data: every value is
masked, and every name that is not a plain word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_SHOWN_MAX: Final = 2_000
_TAIL: Final = 400
_MASK: Final = "█"
_WORD: Final = re.compile(r"[A-Za-z_@$][A-Za-z0-9_.:@$-]{0,39}")
_READ_MAX: Final = 200_000
_COLON: Final = re.compile(r"\s*:")
_JSON: Final = re.compile(
    r'"(?:[^"\\]|\\.)*(?P<closed>")?|-?\d[\d.eE+-]*|(?:true|false|null)\b|[{}\[\]:,]|\s+|.',
    re.DOTALL,
)
_XML: Final = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z_][\w:.-]*)(?P<rest>[^<>]*)(?P<close>/?>)?|<[?!][^>]*>?|[^<]+|<",
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(r"""([\w:.-]+)\s*=\s*("[^"]*"?|'[^']*'?)""")


@dataclass(frozen=True, slots=True)
class MaskedBody:
    """`characters`: of the whole body.

    `is_cut_off`: something that was opened is not closed where it ends.
    """

    text: str
    characters: int
    is_cut_off: bool


def mask_body(body: bytes) -> MaskedBody:
    """Mask every value. Bytes that are not UTF-8 are replaced first."""
    whole = body.decode("utf-8", "replace")
    # a few thousand characters are shown: the rest of a large body need not be walked
    text = whole[:_READ_MAX]
    # by its first sign, not by its content type: a body that cannot be read is often labelled
    # wrongly
    match text.lstrip("\ufeff \t\r\n")[:1]:
        case "{" | "[":
            parts, is_cut_off = _json(text)
        case "<":
            parts, is_cut_off = _xml(text)
        case _:
            # neither form: every word may be a value
            parts, is_cut_off = [re.sub(r"\w+", _MASK, text)], False
    # the length of a value may say what it is
    masked = re.sub(f"{_MASK}{{9,}}", _MASK * 8, "".join(parts))
    if len(masked) > _SHOWN_MAX:
        left_out = len(masked) - _SHOWN_MAX
        masked = f"{masked[: _SHOWN_MAX - _TAIL]}\n… {left_out:,} characters …\n{masked[-_TAIL:]}"
    # what was cut here is open at its end too, which says nothing about the message
    return MaskedBody(masked, len(whole), is_cut_off and len(whole) == len(text))


def _json(text: str) -> tuple[list[str], bool]:
    parts: list[str] = []
    depth, is_open = 0, False
    for token in _JSON.finditer(text):
        found = token[0]
        if found.startswith('"'):
            is_open = token["closed"] is None
            # only a plain word: some senders use numbers or addresses as names of members
            is_name = _COLON.match(text, token.end()) and _WORD.fullmatch(found[1:-1])
            length = len(found) - (1 if is_open else 2)
            parts.append(
                found if is_name else f'"{_MASK * min(length, 8)}{"" if is_open else chr(34)}'
            )
        elif found in "{}[]:,":
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found, 0)
            parts.append(found)
        else:
            parts.append(found if found.isspace() else _MASK * min(len(found), 8))
    return parts, is_open or depth > 0


def _xml(text: str) -> tuple[list[str], bool]:
    parts: list[str] = []
    depth, is_open = 0, False
    for token in _XML.finditer(text):
        found = token[0]
        if token["name"]:
            is_open = token["close"] is None
            if token["end"]:
                depth -= 1
            elif token["close"] == ">" and not token["rest"].endswith("/"):
                depth += 1
            parts.append(
                f"<{token['end']}{token['name']}{''.join(_attributes(token['rest']))}"
                f"{token['close'] or ''}"
            )
        elif found.startswith("<"):
            # comments, CDATA and instructions may hold values: nothing of them is shown
            parts.append("<!>" if found.startswith("<!") else "<?>")
        else:
            parts.append(found if found.isspace() else _MASK * min(len(found.strip()), 8))
    return parts, is_open or depth > 0


def _attributes(rest: str) -> Iterator[str]:
    for name, value in _ATTRIBUTE.findall(rest):
        yield f' {name}="{_MASK * min(max(len(value) - 2, 0), 8)}"'
    if rest.rstrip().endswith("/"):
        yield "/"
