"""A cluster of one process, which loses everything once: each function runs twice."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from statesvc.addons.verify import worker_pool
from statesvc.background.bulk_pool import BulkPool
from statesvc.shipments.rebuild import rebuild


class ProcessCluster:
    def __init__(self, pool: BulkPool) -> None:
        self.abandon = pool.abandon
        self._pool = pool

    def each(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        for arguments in calls:
            self._pool.submit(_listed, function, *arguments).result()
            yield self._pool.submit(function, *arguments).result()

    def shuffled(
        self,
        spread: Callable[..., Iterable[tuple[int, Any]]],
        calls: Iterable[tuple[Any, ...]],
        buckets: int,
        gather: Callable[[int, list[Any]], Any],
    ) -> Iterator[Any]:
        values: dict[int, list[Any]] = defaultdict(list)
        for pairs in self.each(_listed, ((spread, *arguments) for arguments in calls)):
            for bucket, value in reversed(pairs):
                values[bucket].append(value)
        assert set(values) <= set(range(buckets))
        yield from self.each(gather, ((bucket, values[bucket]) for bucket in range(buckets)))


def _listed(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    return list(result) if isinstance(result, Iterator) else result


@contextmanager
def _process_cluster(
    _master: str, begin: Callable[..., None], *arguments: Any
) -> Iterator[ProcessCluster]:
    with BulkPool(1, begin, *arguments) as pool:
        yield ProcessCluster(pool)


@pytest.fixture
def process_cluster(monkeypatch: pytest.MonkeyPatch, own_processes: None) -> str:  # noqa: ARG001 - it starts one
    """Return the address of a cluster that `verify` and `rebuild` use."""
    for module in (worker_pool, rebuild):
        monkeypatch.setattr(module, "open_cluster", _process_cluster)
    return "process"
