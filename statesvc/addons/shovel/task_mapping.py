"""Mapping of tasks to carriers' messages, with the place of the body in a task: a TOML file.
Pure.

```toml
[[rules]]
task = "shop.tracking.*"        # the task's name, with * and ?; a rule without one is for plain messages
carrier = "ups"                 # a carrier of `statesvc carriers`
body = "args.0"                 # a place in args, kwargs or headers, such as kwargs.event.raw; "body" is the payload itself

[[rules]]
headers = { x-source = "carrier-*" }
carrier_from = "headers.x-source"
carriers = { "carrier-ups" = "ups", "carrier-dhl" = "dhl_unified" }
body = "body"
encoding = "base64"             # of a text; "text" if left out
```
The first matching rule counts. Unmatched messages go to the dead letters (`unmapped = "refuse"`
stops instead), and an unreadable message, such as a pickle, stops the transfer
(`unreadable = "dead_letters"` goes on).
"""

import base64
import binascii
import difflib
import fnmatch
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from events.carriers.carrier import Carrier
from events.errors import Cause
from statesvc.addons.shovel.celery_task import Task, UnreadableTaskError, as_bytes, read_task
from statesvc.addons.shovel.source_message import ShovelError, Taken
from statesvc.bodies.sealed_message import SILENT

_ROOTS: Final = ("args", "kwargs", "headers", "body")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MappingRule(_Strict):
    task: str = ""
    headers: Mapping[str, str] = Field(default_factory=dict)
    carrier: str = ""
    carrier_from: str = ""
    carriers: Mapping[str, str] = Field(default_factory=dict)
    body: str
    encoding: Literal["text", "base64"] = "text"
    follow_ups: Literal["unmapped", "drop"] = "unmapped"
    """Treatment of a task with callbacks, a chain or a chord, which cannot run here."""

    @model_validator(mode="after")
    def _check(self) -> "MappingRule":
        if bool(self.carrier) == bool(self.carrier_from):
            raise ValueError("name either `carrier` or `carrier_from`")
        if not self.task and not self.headers:
            raise ValueError("name a `task`, or `headers` that a message must have")
        for path in (self.body, self.carrier_from):
            if path and path.split(".")[0] not in _ROOTS:
                raise ValueError(f"{path!r} begins with none of {', '.join(_ROOTS)}")
        return self

    def fits(self, task: Task) -> bool:
        if self.task:
            if not task.name or not fnmatch.fnmatchcase(task.name, self.task):
                return False
        elif task.name:
            return False
        return all(
            fnmatch.fnmatchcase(str(task.headers.get(name, "")), pattern)
            for name, pattern in self.headers.items()
        )


class _File(_Strict):
    rules: tuple[MappingRule, ...] = Field(min_length=1)
    unmapped: Literal["dead_letters", "refuse"] = "dead_letters"
    unreadable: Literal["dead_letters", "refuse"] = "refuse"

    @field_validator("unmapped", "unreadable", mode="before")
    @classmethod
    def _leaves_none(cls, value: object) -> object:
        if value == "leave":
            raise ValueError(
                '"leave" was removed: have the producers route what is to be taken into a queue of'
                " its own (`task_routes`), and take from that"
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    task: Task
    carrier_id: str
    body: bytes = field(repr=False)
    headers: str

    @property
    def identity(self) -> bytes:
        """Identity by which it is recognised when it comes again."""
        return identities(self.task)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmapped:
    """Message that goes to the dead letters, whole.

    `identity`: another than if it mapped, so that it can be brought in once it does.
    """

    cause: Cause
    detail: str
    task: Task | None
    identity: bytes = field(repr=False)


class TaskMapping:
    def __init__(
        self, file: _File, carriers: Mapping[str, Carrier], *, notify: bool = True
    ) -> None:
        self._file = file
        self._carriers = carriers
        self._added_headers = {} if notify else SILENT

    @property
    def rules(self) -> tuple[MappingRule, ...]:
        return self._file.rules

    def classify(self, taken: Taken, *, now: datetime) -> Mapped | Unmapped:
        try:
            task = read_task(taken, now=now)
        except UnreadableTaskError as error:
            return Unmapped(
                cause=Cause.UNREADABLE,
                detail=str(error),
                task=None,
                identity=unread_identity(taken.body),
            )
        found = self._map(task, now)
        if isinstance(found, Mapped):
            return found
        return Unmapped(
            cause=Cause.UNMAPPED_TASK,
            detail=found,
            task=task,
            identity=identities(task)[1],
        )

    def refuses(self, found: Unmapped) -> bool:
        """Return whether such a message stops the transfer by the file."""
        file = self._file
        return (file.unreadable if found.task is None else file.unmapped) == "refuse"

    def read(self, taken: Taken, *, now: datetime) -> Mapped | Unmapped:
        """Map a message. Raises ShovelError where it stops the transfer."""
        found = self.classify(taken, now=now)
        if isinstance(found, Unmapped) and self.refuses(found):
            what, setting = (
                ("can't be read", "unreadable")
                if found.task is None
                else ("does not map", "unmapped")
            )
            raise ShovelError(
                f"a message in {taken.queue!r} {what}: {found.detail}. It and all that was not"
                " acknowledged yet stay there. "
                f'`{setting} = "dead_letters"` in the mapping puts such messages there'
            )
        return found

    def _map(self, task: Task, now: datetime) -> Mapped | str:
        """Return the mapped message, or the reason why it has no place here.

        The reason holds names, and no other part of the message.
        """
        found = next(
            ((number, rule) for number, rule in enumerate(self.rules, 1) if rule.fits(task)), None
        )
        if found is None:
            return (
                f"no rule is for task {task.name!r}"
                if task.name
                else "no rule is for a message with these headers"
            )
        if task.expires is not None and task.expires < now:
            return f"task {task.name!r} has expired"
        return self._by_rule(*found, task)

    def _by_rule(self, number: int, rule: MappingRule, task: Task) -> Mapped | str:
        if task.follow_ups and rule.follow_ups == "unmapped":
            named = ", ".join(task.follow_ups)
            return (
                f'task {task.name!r} has {named}, which would not run; `follow_ups = "drop"` in'
                f" rule {number} allows it"
            )
        carrier = self._carrier(rule, task)
        if carrier is None:
            return f"rule {number}: {rule.carrier_from} names no carrier"
        body = _body(rule, task)
        if body is None:
            return f"rule {number}: there is no body at {rule.body}, or not in {rule.encoding}"
        if len(body) > carrier.body_bytes_max:
            return (
                f"rule {number}: the body has more than the {carrier.body_bytes_max} bytes that"
                f" {carrier.carrier_id} may send"
            )
        headers = {
            name: _storable(value)
            for name, value in (("celery-task", task.name), ("celery-task-id", task.id))
            if value
        }
        return Mapped(
            task=task,
            carrier_id=carrier.carrier_id,
            body=body,
            headers=orjson.dumps(headers | self._added_headers).decode(),
        )

    def _carrier(self, rule: MappingRule, task: Task) -> Carrier | None:
        if rule.carrier:
            return self._carriers[rule.carrier]
        said = _at(rule.carrier_from, task)
        return self._carriers.get(rule.carriers.get(str(said), "" if rule.carriers else str(said)))


def identities(task: Task) -> tuple[bytes, bytes]:
    """Return the identities of a message: if it maps, and if it does not."""
    # as 0.1 noted the contents of its tasks, so that these are recognised
    prefix = b"" if task.id is None else b"content\x1f"
    return prefix + task.identity, prefix + b"unmapped\x1f" + task.identity


def unread_identity(body: bytes) -> bytes:
    return b"unread\x1f" + body


def parse_mapping(
    text: str, *, name: str, carriers: Mapping[str, Carrier], notify: bool = True
) -> TaskMapping:
    """Parse a mapping. Raises ShovelError with the position and a proposal.

    `name`: of the file, for messages. `notify` False: no subscription is notified of the
    resulting changes.
    """
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ShovelError(f"{name} is no TOML: {error}") from None
    except ValidationError as error:
        raise ShovelError(
            f"{name}: " + "; ".join(_flaw(dict(one)) for one in error.errors(include_url=False))
        ) from None
    for number, rule in enumerate(file.rules, 1):
        for named in (*([rule.carrier] if rule.carrier else []), *rule.carriers.values()):
            if named not in carriers:
                raise ShovelError(
                    f"{name}: rule {number} names no carrier: {named!r}{_meant(named, carriers)};"
                    " `statesvc carriers` lists them"
                )
    return TaskMapping(file, carriers, notify=notify)


def _flaw(error: Mapping[str, Any]) -> str:
    place = [str(part + 1) if isinstance(part, int) else str(part) for part in error["loc"]]
    if error["type"] == "extra_forbidden":
        known = MappingRule.model_fields if len(place) > 1 else _File.model_fields
        return f"{' '.join(place)} means nothing here{_meant(place[-1], known)}"
    return f"{' '.join(place)}: {str(error['msg']).removeprefix('Value error, ')}"


def _meant(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _at(path: str, task: Task) -> Any:  # noqa: ANN401 - any JSON
    """Return the value at a path of the task; None if absent.

    A name may hold dots where no shorter name matches.
    """
    root, _, rest = path.partition(".")
    match root:
        case "args":
            found: Any = task.args
        case "kwargs":
            found = task.kwargs
        case "headers":
            return task.headers.get(rest) if rest in task.headers else _below(task.headers, rest)
        case _:
            return task.payload
    return _below(found, rest)


def _below(found: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    for part in path.split(".") if path else ():
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list | tuple) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _storable(text: str) -> str:
    """Replace characters that PostgreSQL rejects."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _body(rule: MappingRule, task: Task) -> bytes | None:
    found = _at(rule.body, task)
    body = found if isinstance(found, bytes) else as_bytes(found)
    if body is None or rule.encoding == "text":
        return body
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        return None
