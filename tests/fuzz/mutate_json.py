"""Mutations of JSON bodies that know their structure."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from tests.fuzz.trouble import ANY, TEXTS, TIMES, nested

NODES_MAX: Final = 20_000


def mutated(body: bytes, rng: Random) -> bytes:
    """Return the body with one to four changes, printed in one of the ways that JSON is printed.

    Raises ValueError for another text.

    What nests or grows beyond what Python prints within the bounds of its process is a ValueError
    too.
    """
    value = json.loads(body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(value, rng)
    try:
        return _printed(value, rng)
    except (MemoryError, RecursionError) as error:
        raise ValueError("nested too deeply, or too large") from error


def amplified(body: bytes, rng: Random, size: int) -> bytes:
    """Return the body with one member of a list repeated until it has about `size` bytes.

    Raises ValueError for another text.
    """
    root: Any = {"root": json.loads(body)}
    found: list[tuple[Any, Any]] = [
        (holder, key) for holder, key in _members(root) if isinstance(holder, list)
    ] or list(_members(root))
    holder, key = rng.choice(found)
    times = max(1, size // len(json.dumps(holder[key])))
    if isinstance(holder, list):
        holder[key:key] = [holder[key]] * times
    else:
        holder[key] = [holder[key]] * times
    return json.dumps(root["root"]).encode()


def _changed(value: Any, rng: Random) -> Any:
    root = {"root": value}
    found = list(_members(root))
    if len(found) > NODES_MAX:
        return value
    holder, key = rng.choice(found)
    rng.choice(CHANGES)(holder, key, rng)
    return root.get("root", {})


def _members(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object or list under `root` with each of its keys, without recursion."""
    waiting = [root]
    for holder in waiting:
        for key, member in holder.items() if isinstance(holder, dict) else enumerate(holder):
            yield holder, key
            if isinstance(member, dict | list):
                waiting.append(member)


def _any(rng: Random) -> Any:
    return copy.deepcopy(rng.choice(ANY))


def _replace(holder: Any, key: Any, rng: Random) -> None:
    holder[key] = _any(rng)


def _replace_time(holder: Any, key: Any, rng: Random) -> None:
    holder[key] = rng.choice(TIMES) if isinstance(holder[key], str) else _any(rng)


def _remove(holder: Any, key: Any, rng: Random) -> None:
    del rng
    del holder[key]


def _wrap(holder: Any, key: Any, rng: Random) -> None:
    holder[key] = rng.choice(
        ([holder[key]], {"item": holder[key]}, [[holder[key]]], {"0": holder[key]})
    )


def _unwrap(holder: Any, key: Any, rng: Random) -> None:
    del rng
    inner = holder[key]
    if isinstance(inner, list | dict) and inner:
        holder[key] = inner[0] if isinstance(inner, list) else next(iter(inner.values()))


def _retype(holder: Any, key: Any, rng: Random) -> None:
    match holder[key]:
        case bool() | None:
            holder[key] = rng.choice(("", "null", 0, str(holder[key])))
        case str(text):
            holder[key] = (
                int(text)
                if text.isascii() and text.isdigit() and len(text) < 300
                else list(text[:50])
            )
        case int() | float():
            holder[key] = str(holder[key])
        case list(members):
            holder[key] = {str(index): member for index, member in enumerate(members)}
        case dict(members):
            holder[key] = rng.choice((list(members.values()), json.dumps(members)))


def _repeat(holder: Any, key: Any, rng: Random) -> None:
    if isinstance(holder, list):
        holder[key:key] = [holder[key]] * rng.choice((1, 2, 100))
    else:
        holder[key] = [holder[key]] * rng.choice((2, 50))


def _rename(holder: Any, key: Any, rng: Random) -> None:
    if isinstance(holder, dict):
        name = rng.choice(
            (key.upper(), key.lower(), f"ns:{key}", f"@{key}", key + " ", rng.choice(TEXTS))
        )
        holder[name] = holder.pop(key)


def _swap(holder: Any, key: Any, rng: Random) -> None:
    other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def _bury(holder: Any, key: Any, rng: Random) -> None:
    holder[key] = nested(rng.choice((10, 200, 400)), in_object=rng.random() < 0.5)


def _spoil(holder: Any, key: Any, rng: Random) -> None:
    """Put something into the middle of a text."""
    if isinstance(holder[key], str):
        at = rng.randrange(len(holder[key]) + 1)
        holder[key] = (
            holder[key][:at] + rng.choice(TEXTS)[:200] + holder[key][at + rng.choice((0, 1)) :]
        )


CHANGES: Final[tuple[Callable[[Any, Any, Random], None], ...]] = (
    _replace,
    _replace,
    _replace_time,
    _remove,
    _wrap,
    _unwrap,
    _retype,
    _repeat,
    _rename,
    _swap,
    _bury,
    _spoil,
)


def _printed(value: Any, rng: Random) -> bytes:
    ascii_alone, between = rng.random() < 0.5, rng.choice((", ", ", ", ",\n "))
    # `indent` would be printed in Python, in time that grows with the square of the depth
    text = json.dumps(value, ensure_ascii=ascii_alone, separators=(between, ": "))
    match rng.randrange(12):
        case 0:
            text = _with_member_twice(text, rng)
        case 1:
            text = re.sub(
                r"(?<=: )\d+",
                rng.choice(("1" * 5000, "1e999", "-0", "NaN", "-Infinity", "01", "1." + "0" * 300)),
                text,
                count=1,
            )
        case 2:
            return text.encode(
                rng.choice(("utf-8-sig", "utf-16", "utf-16-be", "utf-32")), "surrogatepass"
            )
        case 3:
            return text.encode(rng.choice(("latin-1", "cp1252", "gb18030")), "replace")
        case _:
            pass
    return text.encode("utf-8", rng.choice(("replace", "surrogatepass")))


def _with_member_twice(text: str, rng: Random) -> str:
    members = list(re.finditer(r'"[^"\\]+": (?:"[^"\\]*"|\d+|null|true)', text))
    if not members:
        return text
    member = rng.choice(members)
    return f"{text[: member.start()]}{member[0]}, {text[member.start() :]}"
