"""Dry run of a transfer: messages are counted, or explained one by one. Nothing is taken or stored."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from statesvc.addons.shovel.backup import taken_from_record
from statesvc.addons.shovel.inbox_store import RECEIPT_DAYS
from statesvc.addons.shovel.source import ShovelError
from statesvc.addons.shovel.source_message import Taken, Transport
from statesvc.addons.shovel.task_mapping import Mapped, TaskMapping, Unmapped

_SHOWN = 400


class Class(NamedTuple):
    """One line of a dry run. `due`: now, later, or empty for what does not map. `at`: whether the queue has it, or a worker."""

    queue: str
    at: str
    task: str
    becomes: str
    due: str


def classify(
    messages: Iterable[Taken], mapping: TaskMapping, *, now: datetime, at: str = "queue"
) -> Counter[Class]:
    """Count the messages of each kind."""
    counted: Counter[Class] = Counter()
    for taken in messages:
        found = mapping.classify(taken, now=now)
        name = "" if found.task is None else found.task.name
        if isinstance(found, Mapped):
            is_later = found.task.eta is not None and found.task.eta > now
            counted[
                Class(taken.queue, at, name, found.carrier_id, "later" if is_later else "now")
            ] += 1
        else:
            counted[
                Class(taken.queue, at, name, f"{_fate(found, mapping)}: {found.detail}", "")
            ] += 1
    return counted


def explain_message(taken: Taken, mapping: TaskMapping, *, now: datetime) -> Iterator[str]:
    """Explain in lines: what it is, what becomes of it, and why."""
    found = mapping.classify(taken, now=now)
    task = found.task
    if task is not None:
        yield f"task       {task.name or '- (a plain message)'}"
        yield f"id         {task.id or '- (recognised by its body)'}"
    if not isinstance(found, Mapped):
        yield f"becomes    {_fate(found, mapping)}, {found.cause.value}"
        yield f"because    {found.detail}"
        return
    rule = mapping.rules[found.rule - 1]
    yield f"rule       {found.rule} (task {rule.task or '-'})"
    yield f"becomes    a message of {found.carrier_id}"
    eta = found.task.eta
    yield f"available  {'at once' if eta is None or eta <= now else eta.isoformat()}"
    yield f"known      as the same for {RECEIPT_DAYS} days from then"
    text = found.body.decode("utf-8", "replace")
    yield f"body       {len(found.body)} bytes from {rule.body}: {text[:_SHOWN]}{' ...' if len(text) > _SHOWN else ''}"


def _fate(found: Unmapped, mapping: TaskMapping) -> str:
    if mapping.refuses(found):
        return "stops the transfer"
    return "stays there" if mapping.leaves(found) else "dead letter"


def read_samples(path: Path) -> Iterator[Taken]:
    """Yield a file's messages: tasks as JSON lines, values as kombu writes them into Redis, or lines of a backup. Raises ShovelError."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ShovelError(f"the sample {path} can't be read: {error.strerror}") from None
    for line in filter(None, map(bytes.strip, lines)):
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            document = None
        match document:
            case {"transport": _, "queue": _, "body": str(), **_rest}:
                yield taken_from_record(document)
            case {"properties": dict(), "body": str(), **_rest}:
                yield Taken(transport=Transport.REDIS, queue=path.name, body=line)
            case {"batch": _, "messages": _, "sha256": _}:
                continue
            case _:
                yield Taken(transport=Transport.FILE, queue=path.name, body=line)
