"""The left column: the screens that a key may see, in three groups, with the backlog of each."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statesvc.addons.console.screen import MenuGroup, PageRequest, Screen
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.http.keys.key_store import Scope

_SQL: Final = queries("statesvc.addons.console", "frame_menu")
# Bound of the backlog counts on every page.
_COUNT_MAX: Final = 1000


class Menu:
    def __init__(self, pool: Connections, screens: Sequence[Screen]) -> None:
        self._pool = pool
        self._screens = screens

    async def groups(self, visit: PageRequest, section: str) -> list[dict[str, Any]]:
        """Return the groups with their entries; `section`: the path of the screen that is open."""
        counts = await self._counts(visit)
        return [
            {"name": group.value, "entries": entries}
            for group in MenuGroup
            if (
                entries := [
                    _entry(visit.at(screen.path), screen, section, counts)
                    for screen in self._screens
                    if _is_shown(screen, group, visit)
                ]
            )
        ]

    async def _counts(self, visit: PageRequest) -> Mapping[str, tuple[int, str, bool]]:
        """Return by path the count of waiting items, their noun, and whether they are failures."""
        if not visit.has(Scope.OPS):
            return {}
        async with self._pool.connection() as connection:
            ((letters, receivers, notices),) = await (
                await connection.execute(_SQL["counts"], {"count_max": _COUNT_MAX})
            ).fetchall()
        return {
            "/console/dead-letters": (letters, "wait", False),
            "/console/subscriptions": (receivers, "fail or are disabled", True),
            "/console/notices": (notices, "not seen", False),
        }


def _is_shown(screen: Screen, group: MenuGroup, visit: PageRequest) -> bool:
    return screen.menu is not None and screen.group is group and visit.has(screen.scope)


def _entry(
    path: str, screen: Screen, section: str, counts: Mapping[str, tuple[int, str, bool]]
) -> dict[str, Any]:
    count, counted, is_bad = counts.get(screen.path, (0, "", False))
    shown = f"{count:,}" if count < _COUNT_MAX else f"{_COUNT_MAX - 1}+"
    return {
        "path": path,
        "name": screen.menu,
        "is_here": screen.path == section,
        "count": shown if count else "",
        "counted": counted,
        "is_bad": is_bad,
    }
