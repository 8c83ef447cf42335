"""A cluster that reads whole logs, which the add-on at the seam `cluster` brings."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from statesvc.seams import parts, sentence

T = TypeVar("T")
# The arguments of each call.
Calls: TypeAlias = Iterable[tuple[Any, ...]]


class ClusterError(RuntimeError):
    """The cluster cannot do the work; the message gives the reason."""


class Cluster(Protocol):
    """Runs functions of modules on other machines.

    Work of a lost machine is repeated, so it must not matter how often a function runs.
    """

    def each(self, function: Callable[..., T], calls: Calls) -> Iterator[T]:
        """Yield the results in the order of the calls."""

    def shuffled(
        self,
        spread: Callable[..., Iterable[tuple[int, Any]]],
        calls: Calls,
        buckets: int,
        gather: Callable[[int, list[Any]], T],
    ) -> Iterator[T]:
        """Yield what `gather` makes of each bucket, in order, from the values spread into it."""

    def abandon(self) -> None:
        """Cancel running work by an error. Safe in any thread."""


def open_cluster(
    master: str,
    begin: Callable[..., None],
    *arguments: Any,  # noqa: ANN401 - those of `begin`
) -> AbstractContextManager[Cluster]:
    """Open a cluster for a block. `begin`: run first in each of its processes.

    Raises ClusterError.
    """
    for opened in parts("cluster"):
        return cast("AbstractContextManager[Cluster]", opened(master, begin, *arguments))
    raise ClusterError(sentence("spark", "--master"))
