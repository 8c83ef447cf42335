"""What is wrong with a value, in a sentence for who sent it: the rule, never the value."""

from typing import Any, Final

from pydantic_core import ErrorDetails

_TIME: Final = "should be a time with its offset, such as 2026-03-01T14:05:00Z"
_DAY: Final = "should be a day, such as 2026-03-01"
_DURATION: Final = "should be a duration, such as P3D or PT36H"
_INTEGER: Final = "should be an integer, without quotes"
_NUMBER: Final = "should be a number, without quotes"
_ID: Final = "should be an id as an answer gave it (a UUID)"
_OBJECT: Final = "should be an object: {{...}}"
# Where pydantic speaks of input, validation or its own types.
_SENTENCES: Final = {
    "missing": "is missing",
    "string_type": "should be a text, in quotes",
    "string_too_long": "should have at most {max_length} characters",
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "list_type": "should be a list: [...]",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": _TIME,
    "date_type": _DAY,
    "date_parsing": _DAY,
    "date_from_datetime_parsing": _DAY,
    "date_from_datetime_inexact": _DAY,
    "time_delta_type": _DURATION,
    "time_delta_parsing": _DURATION,
    "uuid_type": _ID,
    "uuid_parsing": _ID,
    "greater_than": "should be more than {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be at most {le}",
}
_SUBJECTS: Final = ("Value error, ", "Input ", "String ")


def violation_text(flaw: ErrorDetails, members: str | None = None) -> str:
    """Return the sentence. `members`: what the object takes, where that is known."""
    kind, context = flaw["type"], flaw.get("ctx", {})
    if kind == "extra_forbidden":
        return (
            "is no member of this object"
            if members is None
            else f"is no member of this object; it takes: {members}"
        )
    if kind == "string_too_short" and context.get("min_length") == 1:
        return "is empty"
    if kind in {"too_short", "too_long"}:
        return _of_length(kind, context)
    sentence = _SENTENCES.get(kind)
    if sentence is not None:
        return sentence.format_map(context)
    text = flaw["msg"]
    for subject in _SUBJECTS:
        text = text.removeprefix(subject)
    return text


def _of_length(kind: str, context: dict[str, Any]) -> str:
    bound, count = (
        ("at least", context["min_length"])
        if kind == "too_short"
        else ("at most", context["max_length"])
    )
    return f"should have {bound} {count} {'member' if count == 1 else 'members'}"
