"""What is wrong with a value is said without the words of a validation library."""

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import AwareDatetime, Field, ValidationError

from statesvc.http.closed_model import ClosedModel
from statesvc.http.middleware import invalid


class Word(StrEnum):
    """Two words."""

    A = "a"
    B = "b"


class FieldFace(ClosedModel):
    """One member of each kind."""

    name: Annotated[str | None, Field(min_length=1, max_length=4)] = None
    count: Annotated[int | None, Field(ge=1, le=9)] = None
    is_good: bool = False
    at: AwareDatetime | None = None
    day: date | None = None
    wait: timedelta | None = None
    numbers: Annotated[list[str] | None, Field(min_length=1)] = None
    word: Word = Word.A


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"name": 4711}, "should be a text, in quotes"),
        ({"name": ""}, "is empty"),
        ({"name": "abcde"}, "should have at most 4 characters"),
        ({"count": "x"}, "should be an integer, without quotes"),
        ({"count": 0}, "should be at least 1"),
        ({"count": 10}, "should be at most 9"),
        ({"is_good": "maybe"}, "should be true or false"),
        ({"at": "2026-05-03"}, "should be a time with its offset, such as 2026-03-01T14:05:00Z"),
        (
            {"at": "2026-05-03T00:00:00"},
            "should be a time with its offset, such as 2026-03-01T14:05:00Z",
        ),
        (
            {"at": "2026-02-30T00:00:00Z"},
            "should be a time with its offset, such as 2026-03-01T14:05:00Z",
        ),
        ({"at": "03.05.2026"}, "should be a time with its offset, such as 2026-03-01T14:05:00Z"),
        ({"day": "1 May"}, "should be a day, such as 2026-03-01"),
        ({"wait": "long"}, "should be a duration, such as P3D or PT36H"),
        ({"numbers": "1Z"}, "should be a list: [...]"),
        ({"numbers": []}, "should have at least 1 member"),
        ({"word": "c"}, "should be 'a' or 'b'"),
        (
            {"colour": 1},
            (
                "is no member of this object; it takes: at, count, day, is_good, name, numbers,"
                " wait, word"
            ),
        ),
    ],
)
def test_each_mistake_is_told_in_one_sentence(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as raised:
        FieldFace.model_validate(given)
    problem = invalid(raised.value, "body", FieldFace)
    assert [violation.detail for violation in problem.violations] == [text]
