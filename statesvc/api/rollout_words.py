"""Rollouts in words, alike on the command line and the console."""

from collections.abc import Iterator

from statesvc.http.views import Answer


def carrier(rollout: Answer) -> str:
    return "all" if rollout["carrier_id"] == "*" else str(rollout["carrier_id"])


def guard(rollout: Answer) -> str | None:
    bounds = rollout["guard"]
    if not bounds:
        return None
    named = [
        f"{name} <= {bounds[f'{name}_percent']:g} %"
        for name in ("errors", "differences")
        if bounds[f"{name}_percent"] is not None
    ]
    return f"{', '.join(named)} of {bounds['messages']} messages"


def fallback(rollout: Answer) -> str | None:
    return f"after {rollout['fallback_seconds']} s" if rollout["readings"] else None


def turned(rollout: Answer) -> Iterator[str]:
    stable = rollout["stable"] or "our stable version"
    readers = f"{stable} reads all"
    if rollout["candidate"] is not None:
        shadow = ", with a shadow" if rollout["shadow"] else ""
        readers = f"{rollout['percent']} % to {rollout['candidate']}, the rest to {stable}{shadow}"
    yield f"{carrier(rollout)}: {readers}; in effect at the next claim"
    yield from rollout["warnings"]


def reader(row: Answer) -> str:
    return "ours" if row["reading"] == "statesvc" else str(row["reading"])


def share(row: Answer) -> str:
    return f"{row['share']} %"


def asked(row: Answer) -> str:
    seconds = row["asked_seconds_ago"]
    return "never" if seconds is None else f"{seconds:.0f} s ago"


def warnings(rollout: Answer) -> Iterator[str]:
    yield from rollout["warnings"]


def tried(page: Answer) -> Iterator[str]:
    """Sum a trial up; nothing without a candidate."""
    totals = page["totals"]
    if totals["candidate"] is None:
        return
    dropped = f", {totals['dropped']} not tried in time" if totals["dropped"] else ""
    yield (
        f"{totals['candidate']} was tried on {totals['messages']:,} messages: {totals['errors']:,}"
        f" failed, {totals['differing']:,} read differently{dropped}"
    )
    fields = sorted(totals["fields"].items(), key=lambda each: -each[1])
    if fields:
        yield f"differences: {', '.join(f'{field} {count:,}' for field, count in fields)}"
