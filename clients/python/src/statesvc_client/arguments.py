"""Keyword arguments of calls, and how they are written."""

from collections.abc import Mapping
from datetime import date
from difflib import get_close_matches
from typing import Any
from uuid import UUID


def checked(arguments: Mapping[str, Any], known: type) -> Mapping[str, Any]:
    """Return the arguments. Raises TypeError for one that the TypedDict `known` does not have."""
    for name in arguments.keys() - known.__annotations__.keys():
        near = "".join(
            f"; did you mean {each!r}?"
            for each in get_close_matches(name, known.__annotations__, n=1)
        )
        raise TypeError(f"unexpected keyword argument {name!r}{near}")
    return arguments


def written(value: object) -> str:
    """Write a time or an id as the API takes it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"an argument cannot be a {type(value).__name__}")


def query_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a query; None: left out."""
    return {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in arguments.items()
        if value is not None
    }
