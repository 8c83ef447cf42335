"""Forms for a subscription: pause, resume, test, send a range again, make a new secret, bound its rate, delete."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from statesvc.addons.console.html_exchange import utc_instant
from statesvc.addons.console.progress_page import WorkProgress, next_part, stated
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Shown,
    Values,
)
from statesvc.api.subscriptions.subscription_operations import ONE as CALL
from statesvc.delivery.event_catalogue import CONNECTION_TEST, EVENT_TYPES
from statesvc.delivery.outcome_words import outcome_words
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import counted
from statesvc.subscriptions.subscription_secrets import ROTATION_GRACE_HOURS_MAX

LIST: Final = "/console/subscriptions"
ONE: Final = LIST + "/{subscription_id}"


async def _ask(
    visit: PageRequest,
    deed: str,
    body: Mapping[str, Any] | None = None,
    **given: Any,  # noqa: ANN401 - JSON
) -> Any:  # noqa: ANN401 - JSON
    return await visit.call_api(
        f"POST {CALL}/{deed}", body, subscription_id=visit.path("subscription_id"), **given
    )


async def _one(visit: PageRequest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = await visit.call_api(
        f"GET {CALL}", subscription_id=visit.path("subscription_id")
    )
    return found


def _then(visit: PageRequest) -> str:
    return visit.at(ONE.format_map(visit.request.match_info))


async def _would_pause(visit: PageRequest, _values: Values) -> DryRun:
    one = await _one(visit)
    return DryRun(
        sentences=[
            f"Nothing is sent to {one['url']} any more; notifications collect until it is resumed, then go out in order."
        ],
        refusal=None if one["state"] == "active" else f"It is {one['state']} already.",
    )


async def _pause(visit: PageRequest, _values: Values) -> Done:
    await _ask(visit, "pause")
    return Done(sentence="It is paused.", then=_then(visit))


async def _would_resume(visit: PageRequest, _values: Values) -> DryRun:
    one = await _one(visit)
    sentences = [
        f"What collected is sent to {one['url']}, the oldest first, as fast as the receiver takes it."
    ]
    if one["state"] == "disabled" and one["missed_since"]:
        sentences.append(
            f"It was disabled, so nothing collected since {one['missed_since']}: replay that range afterwards."
        )
    return DryRun(
        sentences=sentences, refusal="It is active already." if one["state"] == "active" else None
    )


async def _resume(visit: PageRequest, _values: Values) -> Done:
    one = await _ask(visit, "resume")
    missed = " Replay what it missed." if one["missed_since"] else ""
    return Done(sentence=f"It is resumed.{missed}", then=_then(visit))


async def _test_inputs(_visit: PageRequest) -> Sequence[Input]:
    kinds = [CONNECTION_TEST, *(each.kind for each in EVENT_TYPES if each.kind != CONNECTION_TEST)]
    return [Input(name="type", label="Type", options=[(kind, kind) for kind in kinds])]


async def _would_test(visit: PageRequest, values: Values) -> DryRun:
    one = await _one(visit)
    kind = values.get("type") or CONNECTION_TEST
    return DryRun(
        sentences=[
            f"One {kind} goes to {one['url']}, signed like any other and marked as a test. It is never sent again."
        ]
    )


async def _test(visit: PageRequest, values: Values) -> Done:
    came = await _ask(visit, "test", {"type": values.get("type") or CONNECTION_TEST})
    said = outcome_words(came["outcome"], came["status_code"])
    detail = f": {came['detail']}" if came["detail"] else ""
    return Done(
        sentence=f"The test: {said} within {came['duration_ms']:,} ms{detail}.", then=_then(visit)
    )


async def _replay_inputs(visit: PageRequest) -> Sequence[Input]:
    missed = (await _one(visit))["missed_since"]
    since = "" if missed is None else f"{datetime.fromisoformat(missed):%Y-%m-%dT%H:%M}"
    hint = "UTC." if missed is None else "UTC. It has missed what came since then."
    return [
        Input(
            name="since",
            label="Recorded since",
            type="datetime-local",
            value=since,
            hint=hint,
            is_required=True,
        ),
        Input(name="until", label="until", type="datetime-local", hint="UTC. Empty: now."),
        Input(
            name="delivered_too",
            label="Also what the receiver has taken (under the webhook-id that it knows)",
            type="checkbox",
        ),
    ]


def _range(values: Values, *, dry_run: bool) -> dict[str, Any]:
    times = {
        name: utc_instant(values[name], name) for name in ("since", "until") if values.get(name)
    }
    return {**times, "delivered_too": values.get("delivered_too") == "1", "dry_run": dry_run}


async def _would_replay(visit: PageRequest, values: Values) -> DryRun:
    found = await _ask(visit, "replay", _range(values, dry_run=True))
    more = " At least: the range is longer than was counted." if found["next_cursor"] else ""
    return DryRun(
        sentences=[
            f"Would be sent again: {counted(found['put'], 'notification')} of {found['matched']:,} in the range.{more}",
            f"Left alone: {found['waiting']:,} that wait anyway, {found['delivered']:,} that the receiver has taken.",
        ],
        hidden={"total": "0" if found["next_cursor"] else str(found["matched"])},
        refusal=None
        if found["put"] or found["next_cursor"]
        else "There is nothing to send in this range.",
    )


async def _replay(visit: PageRequest, values: Values) -> Shown:
    order = _range(values, dry_run=False)
    progress, _ = await next_part(
        visit, f"POST {CALL}/replay", order, values, subscription_id=visit.path("subscription_id")
    )
    sums = progress.sums
    return WorkProgress(
        progress=progress,
        sentences=[
            f"Put into the outbox: {counted(sums['put'], 'notification')}.",
            f"Left alone: {sums['waiting']:,} that wait anyway, {sums['delivered']:,} that the receiver has taken.",
            "The range goes on." if progress.goes_on else "That was all.",
        ],
        order=stated(values, ("since", "until", "delivered_too")),
        then=_then(visit),
        then_label="To the subscription",
    ).page


async def _rotate_inputs(_visit: PageRequest) -> Sequence[Input]:
    label = f"Hours for which the former secret signs too (0 to {ROTATION_GRACE_HOURS_MAX})"
    return [
        Input(
            name="grace_hours",
            label=label,
            type="number",
            value="24",
            hint="0 ends the former one now.",
        )
    ]


async def _would_rotate(visit: PageRequest, values: Values) -> DryRun:
    one, hours = await _one(visit), values.get("grace_hours") or "24"
    visit.calls.check_parameters(
        f"POST {CALL}/rotate-secret", {"subscription_id": one["id"], "grace_hours": hours}
    )
    return DryRun(
        sentences=[
            f"Notifications to {one['url']} are signed with a new secret from now on, and with the former one too for {hours} hours.",
            "The new one is shown once, on the next page. The receiver needs it before the hours are over.",
        ]
    )


async def _rotate(visit: PageRequest, values: Values) -> Shown:
    hours = values.get("grace_hours") or "24"
    made = await _ask(visit, "rotate-secret", grace_hours=hours)
    return Shown("subscription_secret.html", {"made": made, "hours": hours, "path": _then(visit)})


async def _rate_inputs(visit: PageRequest) -> Sequence[Input]:
    rate = (await _one(visit))["rate_per_second"]
    hint = "Empty: no more than its receiver takes, which the limiter finds out by itself."
    return [
        Input(
            name="rate_per_second",
            label="Notifications a second, at most",
            value=_number(rate),
            hint=hint,
        )
    ]


def _rate(values: Values) -> dict[str, Any]:
    return {"rate_per_second": values.get("rate_per_second") or None}


def _number(rate: float | None) -> str:
    return "" if rate is None else f"{rate:g}"


async def _would_rate(visit: PageRequest, values: Values) -> DryRun:
    present, wanted = _number((await _one(visit))["rate_per_second"]), _rate(values)
    visit.calls.check(f"PATCH {CALL}", wanted)
    return DryRun(
        sentences=[
            f"Now: {present or 'no bound'}.",
            f"Then: {wanted['rate_per_second'] or 'no bound'}, in all notifiers together.",
        ]
    )


async def _set_rate(visit: PageRequest, values: Values) -> Done:
    await visit.call_api(
        f"PATCH {CALL}", _rate(values), subscription_id=visit.path("subscription_id")
    )
    return Done(sentence="Its rate is set.", then=_then(visit))


async def _would_delete(visit: PageRequest, _values: Values) -> DryRun:
    one = await _one(visit)
    return DryRun(
        sentences=[
            f"Nothing is sent to {one['url']} any more, and what waits for it goes nowhere. Its secret ends.",
            "It cannot be undone: a new subscription has another id and another secret. To stop for a while, pause it.",
        ]
    )


async def _delete(visit: PageRequest, _values: Values) -> Done:
    one = await _one(visit)
    await visit.call_api(f"DELETE {CALL}", subscription_id=one["id"])
    return Done(sentence=f"The subscription of {one['url']} is deleted.", then=LIST)


def subscription_actions() -> list[FormAction]:
    about: dict[str, Any] = {"scope": Scope.SUBSCRIPTIONS, "section": LIST, "back": ONE}
    return [
        FormAction(
            path=ONE + "/pause",
            title="Pause",
            button="Pause it",
            dry_run=_would_pause,
            carry_out=_pause,
            **about,
        ),
        FormAction(
            path=ONE + "/resume",
            title="Resume",
            button="Resume it",
            dry_run=_would_resume,
            carry_out=_resume,
            **about,
        ),
        FormAction(
            path=ONE + "/test",
            title="Send a test",
            button="Send it",
            inputs=_test_inputs,
            dry_run=_would_test,
            carry_out=_test,
            **about,
        ),
        FormAction(
            path=ONE + "/replay",
            title="Send a range again",
            button="Send them",
            inputs=_replay_inputs,
            dry_run=_would_replay,
            carry_out=_replay,
            **about,
        ),
        FormAction(
            path=ONE + "/rotate-secret",
            title="Make a new secret",
            button="Make it",
            inputs=_rotate_inputs,
            dry_run=_would_rotate,
            carry_out=_rotate,
            is_drastic=True,
            **about,
        ),
        FormAction(
            path=ONE + "/rate",
            title="Bound its rate",
            button="Set it",
            inputs=_rate_inputs,
            dry_run=_would_rate,
            carry_out=_set_rate,
            **about,
        ),
        FormAction(
            path=ONE + "/delete",
            title="Delete",
            button="Delete it",
            dry_run=_would_delete,
            carry_out=_delete,
            is_drastic=True,
            **about,
        ),
    ]
