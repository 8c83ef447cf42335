"""One carrier's share of `make fuzz`, in a process of its own."""

import contextlib
import os
import re
import resource
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from events.carriers import CARRIERS
from tests.fuzz.examine import examine
from tests.fuzz.mutate import amplified, mutated
from tests.fuzz.seeds import fixtures, payloads

MEMORY_MORE_MAX: Final = 512 * 1024 * 1024
"""Address space that a process may take beyond what it starts with."""
WEIGHED_EVERY: Final = 100
AMPLIFIED_EVERY: Final = 200
AMPLIFIED_BYTES: Final = 1_000_000
FAULTS_MAX: Final = 5


@dataclass(slots=True)
class Report:
    """Results of one carrier's bodies."""

    carrier_id: str
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def bodies(carrier_id: str) -> Iterator[tuple[str, bytes]]:
    """Yield mutations without end, by name: of the fixtures alone (as `make test` has them), of the
    corpus too (+), and large ones (x).
    """
    more = payloads(carrier_id)
    number = 0
    while True:
        yield str(number), body_of(carrier_id, str(number))
        if more:
            yield f"{number}+", body_of(carrier_id, f"{number}+")
        if number % AMPLIFIED_EVERY == 0:
            yield f"{number}x", body_of(carrier_id, f"{number}x")
        number += 1


def body_of(carrier_id: str, name: str) -> bytes:
    """Return the mutation of that name."""
    own, rng = fixtures(carrier_id), Random(f"{carrier_id} {name}")
    if name.endswith("x"):
        return amplified(own, rng, AMPLIFIED_BYTES)
    return mutated((*own, *payloads(carrier_id)) if name.endswith("+") else own, rng)


def fuzz(carrier_id: str, seconds: float) -> Report:
    """Examine mutations for a time; stop after FAULTS_MAX different faults."""
    report = Report(carrier_id)
    until = time.monotonic() + seconds
    seen: set[str] = set()
    for number, (name, body) in enumerate(bodies(carrier_id)):
        try:
            report.outcomes[
                examine(CARRIERS[carrier_id], body, weigh=number % WEIGHED_EVERY == 0)
            ] += 1
        except Exception as error:  # noqa: BLE001 - whatever comes out is what we look for
            report.outcomes["fault"] += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            told = (
                f"{type(error).__name__} in {Path(frame.filename).name} line {frame.lineno}:"
                f" {str(error)[:200]}"
            )
            if (
                key := re.sub(r"\d+", "0", told)
                if isinstance(error, AssertionError)
                else told.partition(":")[0]
            ) not in seen:
                seen.add(key)
                kept = Path(tempfile.gettempdir()) / f"statesvc-fuzz-{carrier_id}-{name}"
                kept.write_bytes(body)
                report.faults.append(
                    f"{told}\n    python -m tests.fuzz {carrier_id} --only {name}    ({kept})"
                )
        if time.monotonic() > until or len(seen) >= FAULTS_MAX:
            return report
    raise AssertionError("mutations have no end")


def bound_memory() -> None:
    """Make a runaway body fail as a MemoryError instead of taking the machine's memory."""
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_MORE_MAX
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
