"""A reader of the feed as the documentation wants it: reads on from its cursor, and where that was
lost drops what it is told to drop.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Get = Callable[..., Awaitable[tuple[int, Any]]]
"""Call of `/v1/feed` with parameters: status and document."""


@dataclass(slots=True)
class FeedReader:
    """`entries`: leaf hashes in the order of the log, as far as it was read.

    `lost`: those that it was told to drop.
    """

    get: Get
    cursor: str | None = None
    entries: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    async def read_on(self) -> None:
        """Read to the present end. An index that was skipped or repeated fails at once."""
        while True:
            status, page = await self.get(
                "/v1/feed", limit="1000", **({} if self.cursor is None else {"after": self.cursor})
            )
            if status == 410:
                self._drop(page["go_on_after"])
                continue
            assert status == 200, page
            indexes = [item["index"] for item in page["items"]]
            assert indexes == list(range(len(self.entries), len(self.entries) + len(indexes)))
            self.entries += [item["leaf_hash"] for item in page["items"]]
            self.cursor = page["cursor"]
            if page["next_cursor"] is None:
                return

    def _drop(self, go_on_after: str) -> None:
        size = int(go_on_after.partition(".")[2]) + 1
        self.lost += self.entries[size:]
        del self.entries[size:]
        self.cursor = go_on_after
