"""Detection of empty messages, and empty parts of them: an error, a notice, no content.

A notice that holds dated members as well holds scans under an unknown name: carriers rename, wrap
and repeat their containers, and data lost that way must be noticed. Used only where no event was
read.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

from lxml import etree

NO_CONTAINER: Final = "nothing is read here: the known list or object is absent"

_DATE: Final = re.compile(
    r"\s*(?:(?:19|20)\d\d(?P<sign>[-/.])\d{1,2}(?P=sign)\d{1,2}"
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\D.*|\d{4}|\d{6})?\Z"
    r"|(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:19|20)\d\d\Z"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](?:\d\d|(?:19|20)\d\d)(?:\D|\Z)"
    r"|\d{1,2}[- ][A-Za-z]{3,9}\.?[- ,]\s?(?:19|20)\d\d"
    r"|(?:[A-Za-z]{3,9},?\s+)?[A-Za-z]{3,9}\.?\s+\d{1,2},?\s+(?:19|20)\d\d"
    r"|/Date\(\d)",
    re.ASCII,
)
_EPOCHS: Final = (range(10**9, 2 * 10**9 + 1), range(10**12, 2 * 10**12 + 1))
_NAME_OF_TIME: Final = re.compile(r"date|time|stamp|ts\Z|at\Z")
# Names of errors, and of fields about the message itself, as `squashed`.
_ERROR: Final = re.compile(
    r"err(?:or|code|msg|no|s?\Z)|fault|fail|exception|notification|warning|messages\Z|msgs\Z|"
    r"header\Z"
)
# Names under which an error or a notice is worded.
_WORDS: Final = frozenset(
    {
        "code",
        "detail",
        "message",
        "mensagem",
        "msg",
        "msgs",
        "reason",
        "returncode",
        "returnmessage",
        "rmk",
        "title",
    }
)
# Names of an HTTP status, which may hold an error's.
_STATUSES: Final = frozenset({"httpcode", "httpstatus", "status", "statuscode"})
# Names of a flag that is not set where there is an error.
_SUCCESSES: Final = frozenset({"ok", "statusflag", "success", "successful"})
_NO_WORDS: Final = frozenset(
    {
        "",
        "0",
        "1",
        "200",
        "false",
        "none",
        "null",
        "ok",
        "s0000",
        "success",
        "successful",
        "true",
        "成功",
    }
)
_NO_ERROR: Final = frozenset({"", "0", "fail", "failed", "false", "no"})


@lru_cache(maxsize=4096)
def squashed(name: str) -> str:
    """Return a name without case, hyphens, underscores and blanks, to compare its spellings."""
    return "".join(character for character in name.casefold() if character.isalnum())


def respelled(parent: dict[str, Any], name: str) -> str | None:
    """Return the single other spelling of a name in an object.

    None where there is not exactly one.
    """
    wanted = squashed(name)
    found = [key for key in parent if squashed(key) == wanted]
    return found[0] if len(found) == 1 else None


def is_empty(value: object) -> bool:
    """Return whether a JSON value is empty, at any depth."""
    if type(value) is dict:
        return all(map(is_empty, value.values()))
    if type(value) is list:
        return all(map(is_empty, value))
    return value is None or value == ""


def says_nothing(value: object, *, deep: bool = False) -> bool:
    """Return whether a JSON value is an error or a notice, and holds no dated object.

    An empty object is neither: a format has its own word for `no events yet`. `deep`: the error
    or notice may be anywhere within.
    """
    return not holds_dated(value) and _has_notice(value, deep=deep)


def holds_dated(value: object, but: AbstractSet[str] = frozenset()) -> bool:
    """Return whether a JSON value contains a dated object.

    Its members `but` and its notices are ignored.
    """
    if type(value) is dict:
        inner = [
            member
            for name, member in value.items()
            if name not in but and not _ERROR.search(squashed(name))
        ]
    else:
        inner = value if type(value) is list else []
    return any(_is_dated(member) or holds_dated(member) for member in inner)


def holds_dated_list(value: dict[str, Any], but: AbstractSet[str]) -> bool:
    """Return whether an object has a list of anything dated, under a name that is not in `but`."""
    return any(
        type(member) is list and holds_dated(member)
        for name, member in value.items()
        if name not in but and not _ERROR.search(squashed(name))
    )


def _is_dated(value: object) -> bool:
    return type(value) is dict and any(is_date(name, member) for name, member in value.items())


def is_date(name: str, value: object) -> bool:
    """Return whether a member of an object is a date: by its text, or as an epoch by its name."""
    if type(value) is str:
        return _DATE.match(value) is not None
    return (
        type(value) is int
        and any(value in epochs for epochs in _EPOCHS)
        and _NAME_OF_TIME.search(squashed(name)) is not None
    )


def _has_notice(value: object, *, deep: bool) -> bool:
    """Return whether it has a notice: errors count wherever they stand in an object.

    Words only where they are its own, as scans have some.
    """
    if type(value) is list:
        return deep and any(_has_notice(member, deep=deep) for member in value)
    if type(value) is not dict:
        return False
    return any(
        _is_notice(squashed(name), member)
        or (_has_notice(member, deep=True) if deep else _has_error(member))
        for name, member in value.items()
    )


def _has_error(value: object) -> bool:
    return type(value) is dict and any(
        _is_error(squashed(name), member) or _has_error(member) for name, member in value.items()
    )


def _is_notice(name: str, value: object) -> bool:
    if name in _SUCCESSES:
        return type(value) in (bool, int, str) and str(value).casefold() in _NO_ERROR
    if name in _STATUSES:
        return str(value).isdecimal() and 400 <= int(str(value)[:4]) < 600
    return _is_error(name, value) or (
        name in _WORDS and type(value) in (int, str) and str(value).casefold() not in _NO_WORDS
    )


def _is_error(name: str, value: object) -> bool:
    return (
        _ERROR.search(name) is not None
        and not is_empty(value)
        and str(value).casefold() not in _NO_ERROR
    )


def xml_holds_dated(element: etree._Element, but: AbstractSet[str] = frozenset()) -> bool:
    """Return whether an element contains a dated element (by an attribute or its content).

    Its notices and headers are ignored. `but`: names of its children that hold other dates.
    """
    inner = (each for each in element if each.tag not in but and not _xml_is_notice(each))
    return any(_xml_is_dated(each) or xml_holds_dated(each) for each in inner)


def _xml_is_dated(element: etree._Element) -> bool:
    return any(_DATE.match(str(printed)) for printed in element.attrib.values()) or any(
        map(_DATE.match, _texts(element))
    )


def _texts(element: etree._Element) -> Iterator[str]:
    return (child.text for child in element if child.text)


def _xml_is_notice(element: etree._Element) -> bool:
    return _ERROR.search(squashed(element.tag)) is not None
