"""What argparse says of a wrong command line, in the words of a sentence that says what to do."""

import re
from collections.abc import Callable, Iterable
from typing import Final

_NUMBERS: Final = {"int": "a whole number", "float": "a number"}


def _missing(found: re.Match[str]) -> str:
    *others, last = found[1].split(", ")
    return f"{', '.join(others)} and {last} are missing" if others else f"{last} is missing"


def _invalid(found: re.Match[str]) -> str:
    return (
        f"{found[1]} takes {_NUMBERS[found[2]]}, not {found[3]}"
        if found[2] in _NUMBERS
        else f"{found[1]}: {found[3]} is not valid"
    )


def _choice(found: re.Match[str]) -> str:
    choices = [choice.strip("' ") for choice in found[3].split(",")]
    close = close_matches(found[2], choices)
    instead = (
        f"did you mean {' or '.join(close)}" if close else f"it is one of {', '.join(choices)}"
    )
    return f"{found[1]} cannot be {found[2]!r}: {instead}"


_SENTENCES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"the following arguments are required: (.+)"), _missing),
    (
        re.compile(r"one of the arguments (.+) is required"),
        lambda found: f"one of {', '.join(found[1].split())} is missing",
    ),
    (re.compile(r"argument (\S+): invalid (\w+) value: (.+)"), _invalid),
    (re.compile(r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.+)\)"), _choice),
    (
        re.compile(r"argument (\S+): expected (?:one|at least one) argument"),
        lambda found: f"{found[1]} needs a value",
    ),
    (
        re.compile(r"argument (\S+): not allowed with argument (\S+)"),
        lambda found: f"{found[1]} and {found[2]} exclude each other",
    ),
    (re.compile(r"argument (\S+): (.+)"), lambda found: f"{found[1]}: {found[2]}"),
)


def in_words(message: str) -> str:
    """Return argparse's message as the beginning of a sentence."""
    for pattern, sentence in _SENTENCES:
        if found := pattern.fullmatch(message):
            return sentence(found)
    return message


def close_matches(word: str, known: Iterable[str]) -> list[str]:
    """Return what was probably meant, two at most."""
    import difflib  # noqa: PLC0415 - few command lines are wrong

    return difflib.get_close_matches(word, list(known), n=2)
