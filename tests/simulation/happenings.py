"""Virtual time: things that happen later, in order. Nothing sleeps."""

import heapq
import itertools
from collections.abc import Callable


class Events:
    """`now` is in seconds; `run` moves it from one happening to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def after(self, seconds: float, happening: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + seconds, next(self._order), happening))

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, happening = heapq.heappop(self._heap)
            happening()
        self.now = until
