"""Sources by their URL: the schemes that there are, checked before anything is taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarl import URL

from statesvc.addons.shovel.amqp_source import AmqpSource
from statesvc.addons.shovel.file_source import BackupSource, LineSource
from statesvc.addons.shovel.redis_source import RedisSource, TakeUnacked
from statesvc.addons.shovel.source import ShovelError, Source, Wants

AMQP_SCHEMES: Final = ("amqp", "amqps")
REDIS_SCHEMES: Final = ("redis", "rediss", "unix")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of a source. `delayed`: the prefix of the queues of native delayed delivery; None: leave them alone.

    `process`: which one this is of `processes` that take from the same source. `wants`: None for all messages.
    """

    queues: Sequence[str]
    delayed: str | None = None
    prefetch: int = 1000
    unacked: TakeUnacked = TakeUnacked.EXPIRED
    visibility_seconds: float = 3600
    process: int = 0
    processes: int = 1
    wants: Wants | None = None


def make_source(url: str, options: SourceOptions) -> Source:
    """Make a source that is not open yet. Raises ShovelError."""
    place = parse_url(url)
    if place.scheme in AMQP_SCHEMES:
        if options.wants is not None:
            raise ShovelError(
                'RabbitMQ hands over whatever comes next, so `"leave"` in the mapping is for Redis and files: let the producers route what '
                "is to be taken into a queue of its own (`task_routes`), and take from that"
            )
        if not options.queues and options.delayed is None:
            raise ShovelError("name the queues to take from: --queue NAME")
        return AmqpSource(place, options.queues, delayed=options.delayed, prefetch=options.prefetch)
    if options.delayed is not None:
        raise ShovelError("native delayed delivery is RabbitMQ's: leave out --delayed")
    if place.scheme in REDIS_SCHEMES:
        if not options.queues:
            raise ShovelError("name the queues to take from: --queue NAME")
        return RedisSource(
            place,
            options.queues,
            process=options.process,
            unacked=options.unacked,
            visibility_seconds=options.visibility_seconds,
            wants=options.wants,
        )
    if place.scheme in {"", "file"}:
        path = Path(place.path if place.scheme else url)
        return LineSource(
            path, process=options.process, processes=options.processes, wants=options.wants
        )
    raise ShovelError(
        f"nothing is taken from {place.scheme!r}: use amqp://, amqps://, redis://, rediss:// or a file"
    )


def is_endless(url: str) -> bool:
    """Return whether more may come."""
    return parse_url(url).scheme in {*AMQP_SCHEMES, *REDIS_SCHEMES}


def make_backup_source(
    folder: Path, *, process: int, processes: int, wants: Wants | None
) -> Source:
    """Make a source of what an earlier transfer took. Raises ShovelError where there is no backup."""
    return BackupSource(folder, process=process, processes=processes, wants=wants)


def parse_url(url: str) -> URL:
    """Parse a URL. Raises ShovelError, which does not repeat the login."""
    try:
        place = URL(url)
    except ValueError:
        raise ShovelError(
            "the broker's URL is none; percent-encode what is special in user and password"
        ) from None
    if place.scheme in AMQP_SCHEMES and not place.host:
        raise ShovelError("the broker's URL names no host")
    return place
