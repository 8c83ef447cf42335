"""Subscriptions in words, alike on the command line, the console and the portal."""

from collections.abc import Iterator
from datetime import UTC, datetime

from statesvc.background.duration import duration
from statesvc.delivery.outcome import outcome_words
from statesvc.http.views import Answer, Denied, counted


def failing_for(one: Answer) -> str | None:
    failing = one["failing"]
    if failing is None:
        return None
    since = datetime.now(UTC) - datetime.fromisoformat(failing["since"])
    return (
        f"{duration(since.total_seconds())},"
        f" {counted(failing['failures'], 'try').replace('trys', 'tries')}"
    )


def last_answer(one: Answer) -> str | None:
    failing = one["failing"] or {}
    return outcome_words(failing.get("last_outcome"), failing.get("last_status_code")) or None


def give_up_after(one: Answer) -> str | None:
    limits = one["give_up_after_seconds"].items()
    return ", ".join(f"{kind} {duration(age)}" for kind, age in limits if age is not None) or None


def pace(one: Answer) -> str:
    limiter = one["limiter"]
    return (
        f"{limiter['in_flight']} of {limiter['limit']} under way, breaker {limiter['breaker']}, "
        f"{counted(limiter['notifiers'], 'notifier')}"
    )


def attempt_outcome(attempt: Answer) -> str:
    return outcome_words(attempt["outcome"], attempt["status_code"])


def would_pause(one: Answer) -> str:
    if one["state"] != "active":
        return Denied(f"It is {one['state']} already.")
    return (
        f"Nothing is sent to {one['url']} until it is resumed. Notifications collect, and then go"
        " out in order."
    )


def would_resume(one: Answer) -> Iterator[str]:
    if one["state"] == "active":
        yield Denied("It is active already.")
    yield (
        f"What collected is sent to {one['url']}, the oldest first, as fast as the receiver"
        " takes it."
    )
    yield from missed(one)


def resumed(one: Answer) -> Iterator[str]:
    yield "Resumed: what waits is sent now."
    yield from missed(one)


def missed(one: Answer) -> Iterator[str]:
    if one["missed_since"] is not None:
        since = datetime.fromisoformat(one["missed_since"]).astimezone(UTC)
        yield (
            "Nothing was collected while it was disabled: replay what it missed since"
            f" {since:%Y-%m-%dT%H:%M:%SZ} (statesvc subscriptions replay {one['id']} --since"
            f" {since:%Y-%m-%dT%H:%M:%SZ})."
        )


def tested(came: Answer) -> Iterator[str]:
    said = outcome_words(came["outcome"], came["status_code"])
    detail = f": {came['detail']}" if came["detail"] else ""
    sentence = f"{said} after {came['duration_ms']:,} ms{detail}"
    yield sentence if came["outcome"] == "delivered" else Denied(sentence)
    if came["outcome"] == "address_refused":
        yield (
            "STATESVC_SUBSCRIBER_ALLOW does not list the network of its address. A command without"
            " --url reads that setting itself: --env-file FILE brings the service's own."
        )


def replayed(answer: Answer) -> Iterator[str]:
    if datetime.fromisoformat(answer["until"]) <= datetime.fromisoformat(answer["since"]):
        yield Denied("The end of the range must lie after its beginning.")
        return
    least = "At least " if answer["dry_run"] and answer["next_cursor"] else ""
    verb = "would be sent" if answer["dry_run"] else "are sent"
    yield (
        f"{least}{answer['put']:,} of {answer['matched']:,} {verb} again"
        f" ({answer['never_written']:,} were never written)."
    )
    yield (
        f"Left alone: {answer['waiting']:,} that wait anyway, {answer['delivered']:,} that the"
        " receiver has taken."
    )


def secret(made: Answer) -> Iterator[str]:
    yield from [made["secret"]] if made["secret"] else made["public_keys"]
    yield from shown_once(made)


def shown_once(made: Answer) -> Iterator[str]:
    if made["secret"]:
        yield (
            "The secret is shown this once. Hand it to who runs the receiver, by a way that keeps"
            " secrets."
        )
    else:
        yield "Receivers verify with the public key."


def former_secret(stated: Answer) -> str:
    hours = float(stated.get("grace_hours") or 24)
    return f"The former one signs too for {duration(3600 * hours)}."
