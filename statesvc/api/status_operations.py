"""`GET /v1/status`: the service's status, for `statesvc status` and the console's first page."""

from dataclasses import asdict
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.service_status import ServiceStatus, read_status
from statesvc.api.status_facts import HourOfPushes
from statesvc.health.finding import Finding
from statesvc.health.reconciler import PromiseStatus
from statesvc.health.running_processes import last_minute
from statesvc.queue.depths import QueueDepths


class ShownFinding(TypedDict):
    """A finding, in a sentence."""

    urgency: Annotated[
        Literal["now", "human", "note"],
        Field(
            description=(
                "`now`: a promise is broken; `human`: it waits for a decision; `note`: nobody need"
                " act."
            )
        ),
    ]
    about: str
    text: str
    page: Annotated[
        str | None, Field(description="Of docs/runbook: what to do. Null: nothing is to be done.")
    ]
    cause: Annotated[
        str | None,
        Field(
            description="The page of what this follows from, which stands before it. Null: a cause."
        ),
    ]
    runbook_url: Annotated[
        str | None,
        Field(
            description="The page in the console; null too where STATESVC_CONSOLE_URL is not set."
        ),
    ]
    subscription_id: str | None
    subscription_state: Annotated[
        str | None, Field(description="Of many subscriptions: the state that all of them have.")
    ]


class MinuteOfPushes(TypedDict):
    """Pushes of the last minute."""

    acknowledged: int
    refused: Annotated[dict[str, int], Field(description="By the code of the problem.")]


class ShownStatus(TypedDict):
    """Status of the service."""

    needs_human: bool
    troubles: Annotated[list[ShownFinding], Field(description="The worst first.")]
    promises: list[PromiseStatus]
    pushes_last_minute: MinuteOfPushes
    queue: QueueDepths
    pushes_last_hour: Annotated[dict[str, HourOfPushes], Field(description="By carrier.")]
    last_pushes: Annotated[
        dict[str, float],
        Field(description="By carrier: when it pushed last, in seconds since 1970."),
    ]
    processes: Annotated[
        dict[str, int],
        Field(description="How many of each role were heard of within half a minute."),
    ]
    oldest_unsealed_seconds: float
    database_bytes: int


@kit.operation("GET /v1/status", scope="ops", tag="status")
async def get_status(context: kit.Context, _call: kit.Call[None, None]) -> ShownStatus:
    """Show the status of the service.

    Findings that need a human first, each with its page of the runbook; then promises, pushes,
    queues and processes.
    """
    async with context.pool.connection() as connection:
        return shown_status(await read_status(connection), console_url=context.console_url)


def shown_status(status: ServiceStatus, *, console_url: str | None = None) -> ShownStatus:
    sample = status.sample
    minute = last_minute(sample.running)
    return {
        "needs_human": status.needs_human,
        "troubles": [
            shown_finding(trouble, console_url=console_url) for trouble in status.troubles
        ],
        "promises": sample.promises,
        "pushes_last_minute": {
            "acknowledged": minute.acknowledged,
            "refused": dict(minute.refused),
        },
        "queue": status.queue,
        "pushes_last_hour": dict(status.pushes),
        "last_pushes": dict(sample.last_pushes),
        "processes": dict(sample.processes),
        "oldest_unsealed_seconds": sample.oldest_unsealed_seconds,
        "database_bytes": sample.size_bytes,
    }


def shown_finding(trouble: Finding, *, console_url: str | None = None) -> ShownFinding:
    shown: ShownFinding = {**asdict(trouble)}  # type: ignore[typeddict-item]
    url = (
        None
        if trouble.page is None or console_url is None
        else f"{console_url.rstrip('/')}/console/runbook/{trouble.page}"
    )
    return {**shown, "page": _path(trouble.page), "cause": _path(trouble.cause), "runbook_url": url}


def _path(page: str | None) -> str | None:
    return None if page is None else f"docs/runbook/{page}.md"


OPERATIONS: Final = (get_status,)
