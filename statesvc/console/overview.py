"""What is wrong, first; then how much there is of everything that is not zero. From the same source as `statesvc status`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from statesvc.api.service_status import ServiceStatus, read_status
from statesvc.console.charts import Bar, bars
from statesvc.console.screen import PageRequest, Screen
from statesvc.database.pool import Connections
from statesvc.database.queries import queries
from statesvc.health.finding import Finding
from statesvc.http.keys.key_store import Scope

_SQL: Final = queries("statesvc.console", "overview")
_PLACES: Final[Mapping[str, str]] = {
    "Lag": "/console/queue",
    "CarrierHeld": "/console/carriers",
    "CarrierSilent": "/console/carriers",
    "UnknownCodes": "/console/carriers",
    "DeadLettersGrow": "/console/dead-letters",
    "SubscriberFailing": "/console/subscriptions",
    "RoleDown": "/console/workers",
}
"""Where the console shows more of a trouble, by its page of the runbook."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number worth a glance, and where it comes from."""

    name: str
    value: int
    path: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The first screen."""

    pool: Connections

    async def show(self, visit: PageRequest) -> Mapping[str, Any]:
        """Troubles, figures, an hour of webhooks."""
        async with self.pool.connection() as connection:
            status = await read_status(connection)
            minutes = await (await connection.execute(_SQL["minutes"])).fetchall()
        hour = [Bar(f"{minute:%H:%M}", counts) for minute, *counts in minutes]
        return {
            "troubles": [(trouble, _place(trouble, visit)) for trouble in status.troubles],
            "figures": [(figure, visit.is_shown(figure.path)) for figure in _figures(status) if figure.value],
            "hour": bars(hour, title="Webhooks of the last hour, minute by minute: new, repeated, refused", width=720, label_every=10),
        }

    def screen(self) -> Screen:
        """The row of the table."""
        return Screen(path="/console", title="Overview", template="overview.html", scope=Scope.OPS, show=self.show, menu="Overview")


def _place(trouble: Finding, visit: PageRequest) -> str | None:
    path = _PLACES.get(trouble.page or "")
    if path is None or not visit.is_shown(path):
        return None
    if trouble.subscription_id is not None:
        return f"{path}/{trouble.subscription_id}"
    return path if trouble.subscription_state is None else f"{path}?state={trouble.subscription_state}"


def _figures(status: ServiceStatus) -> list[Figure]:
    lanes, outbox = status.queue["carriers"].values(), status.queue["outbox"]
    return [
        Figure("messages ready", sum(lane["ready"] for lane in lanes), "/console/queue"),
        Figure("messages in hand", sum(lane["leased"] for lane in lanes), "/console/queue"),
        Figure("messages scheduled", sum(lane["scheduled"] for lane in lanes), "/console/queue"),
        Figure("messages on hold", sum(lane["held"] for lane in lanes), "/console/carriers"),
        Figure("notifications ready", outbox["ready"], "/console/subscriptions"),
        Figure("notifications scheduled", outbox["scheduled"], "/console/subscriptions"),
        Figure("dead letters", sum(count for _, _, count in status.sample.dead_letters), "/console/dead-letters"),
        Figure("pushed in an hour", sum(pushes.accepted for pushes in status.pushes.values()), "/console/carriers"),
        Figure("refused in an hour", sum(pushes.refused for pushes in status.pushes.values()), "/console/carriers"),
    ]
