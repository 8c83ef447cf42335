"""Spark: a task for each call, and one shuffle where values must meet.

Functions travel by name, so that each machine needs this release in the Python of PYSPARK_PYTHON.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.log.cluster import Calls, ClusterError

T = TypeVar("T")
# Tasks of a job; the driver holds their results at once.
_TASKS_PER_CORE: Final = 16
# In a process of the cluster: the runs that have begun.
_begun: set[str] = set()


class _Start(NamedTuple):
    run: str
    begin: Callable[..., None]
    arguments: tuple[Any, ...]


class SparkCluster:
    def __init__(self, context: Any, start: _Start) -> None:  # noqa: ANN401 - pyspark is optional
        self._context = context
        self._start = start

    def each(self, function: Callable[..., T], calls: Calls) -> Iterator[T]:
        left = iter(calls)
        call = partial(_call, self._start, function)
        while some := list(islice(left, self._context.defaultParallelism * _TASKS_PER_CORE)):
            yield from _results(self._context.parallelize(some, len(some)).map(call))

    def shuffled(
        self,
        spread: Callable[..., Iterable[tuple[int, Any]]],
        calls: Calls,
        buckets: int,
        gather: Callable[[int, list[Any]], T],
    ) -> Iterator[T]:
        some = list(calls)
        tasks = self._context.parallelize(some, max(1, len(some)))
        values = tasks.flatMap(partial(_spread, self._start, spread))
        # an int is its own hash
        gathered = values.partitionBy(buckets, int).mapPartitionsWithIndex(
            partial(_gather, self._start, gather)
        )
        yield from _results(gathered)

    def abandon(self) -> None:
        self._context.cancelAllJobs()


@contextmanager
def spark_cluster(
    master: str,
    begin: Callable[..., None],
    *arguments: Any,  # noqa: ANN401 - those of `begin`
) -> Iterator[SparkCluster]:
    """Connect to Spark for the time of the block. Raises ClusterError."""
    try:
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - 500 MB that few install
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ClusterError("--master needs pyspark: pip install 'statesvc[spark]'") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName("statesvc")
    conf.setIfMissing("spark.ui.enabled", "false")
    try:
        context = SparkContext(conf=conf)
    except PySparkException as error:
        raise ClusterError(f"Spark does not start (it needs Java 17): {error}") from error
    try:
        context.setLogLevel("ERROR")
        yield SparkCluster(context, _Start(uuid4().hex, begin, arguments))
    finally:
        context.stop()


def _results(tasks: Any) -> Iterator[Any]:  # noqa: ANN401 - an RDD
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - comes with pyspark

    try:
        results = tasks.collect()
    except Py4JJavaError as error:
        raise ClusterError(_reason(str(error.java_exception.getMessage()))) from error
    except Py4JError as error:
        raise ClusterError("Spark ended in the middle of the work") from error
    for result in results:
        if isinstance(result, UnreadableArchiveError):
            raise result
        yield result


def _reason(message: str) -> str:
    """Return the last line of the error before Java's own trace."""
    said, _, _ = message.partition("\n\tat ")
    lines = [line for line in said.splitlines() if line.strip()]
    return f"Spark gave up: {lines[-1].strip()}" if lines else "Spark gave up"


def _ready(start: _Start) -> None:
    if start.run not in _begun:
        start.begin(*start.arguments)
        _begun.add(start.run)


def _call(start: _Start, function: Callable[..., T], arguments: tuple[Any, ...]) -> T | Exception:
    _ready(start)
    try:
        return function(*arguments)
    except UnreadableArchiveError as error:
        # a repetition would not help
        return error


def _spread(
    start: _Start, spread: Callable[..., Iterable[tuple[int, Any]]], arguments: tuple[Any, ...]
) -> Iterator[tuple[int, Any]]:
    _ready(start)
    try:
        yield from spread(*arguments)
    except UnreadableArchiveError as error:
        yield 0, error


def _gather(
    start: _Start,
    gather: Callable[[int, list[Any]], T],
    bucket: int,
    pairs: Iterator[tuple[int, Any]],
) -> Iterator[T | Exception]:
    _ready(start)
    values = [value for _, value in pairs]
    failed = [value for value in values if isinstance(value, UnreadableArchiveError)]
    yield failed[0] if failed else gather(bucket, values)
