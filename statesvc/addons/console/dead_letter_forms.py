"""Forms for dead letters: replay one or a group, a canary first; discard."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statesvc.addons.console.operation_forms import inputs_of, stated_in
from statesvc.addons.console.progress_page import WorkProgress, next_part, stated
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Shown,
    Values,
    counted,
)
from statesvc.api.dead_letter_replay_models import DiscardMany, ReplayMany
from statesvc.http.keys.key_store import Scope
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits

LIST: Final = "/console/dead-letters"
GROUP: Final = LIST + "/group"
ONE: Final = LIST + "/{dead_letter_id}"
_AT_ONCE: Final = 100
"""Dead letters of one call: small enough that its page shows progress."""
_FILTER: Final = ("kind", "carrier_id", "cause")
_PACE: Final = ("canary", "stop_at_percent", "patience_seconds")
_LIMITS: Final = ReplayLimits()
_STOPPED: Final[Mapping[str, str]] = {
    ReplayEnd.CANARY_FAILED: "Stopped: too many of the canary fail again. The rest is untouched: fix the cause, then replay again.",
    ReplayEnd.ERRORS_ROSE: "Stopped: too many fail again. The rest is untouched: fix the cause, then replay again.",
    ReplayEnd.NO_VERDICTS: "Nothing that was put back has come to an end yet. Does a worker run? What is back in its queue stays there.",
}


async def _filter_inputs(visit: PageRequest) -> Sequence[Input]:
    """Return the inputs that select dead letters."""
    return inputs_of(ReplayMany, *_FILTER, values=visit.request.query)


async def _replay_inputs(visit: PageRequest) -> Sequence[Input]:
    return [*await _filter_inputs(visit), *inputs_of(ReplayMany, "canary", "stop_at_percent")]


def _wish(values: Values) -> dict[str, Any]:
    return {
        **stated_in(values, ReplayMany, *_FILTER, *_PACE),
        "limit": _AT_ONCE,
        "why": values["why"],
    }


async def _would_replay(visit: PageRequest, values: Values) -> DryRun:
    answer = await visit.call_api(
        "POST /v1/dead-letters/replay", {**_wish(values), "dry_run": True}
    )
    plan = answer["plan"]
    replayable = sum(line["replayable"] for line in plan)
    rows = [
        (
            line["carrier_id"],
            line["kind"],
            line["cause"],
            IN_WORDS[Way(line["way"])],
            line["dead_letters"],
            line["replayable"],
            "; ".join(
                f"{count:,}: {SENTENCES[Obstacle(obstacle)]}"
                for obstacle, count in line["obstacles"].items()
            ),
        )
        for line in plan
    ]
    canary = int(values.get("canary") or _LIMITS.canary)
    first = (
        f"{min(canary, replayable):,} go first; the rest when these went well."
        if canary
        else "All go without a canary."
    )
    return DryRun(
        sentences=[
            f"Of {counted(answer['remaining'], 'dead letter')}, {replayable:,} can be replayed, oldest first. {first}"
        ],
        hidden={"total": str(answer["remaining"])},
        columns=(
            "Carrier",
            "Kind",
            "Cause",
            "How",
            "Dead letters",
            "Replayable",
            "What stands in the way",
        ),
        rows=rows,
        refusal=None if replayable else "There is nothing that can be replayed.",
    )


async def _replay(visit: PageRequest, values: Values) -> Shown:
    progress, answer = await next_part(visit, "POST /v1/dead-letters/replay", _wish(values), values)
    return WorkProgress(
        progress=progress,
        sentences=_outcome(answer),
        order=stated(values, (*_FILTER, *_PACE)),
        trouble=_STOPPED.get(answer["ended"]),
        then=LIST,
        then_label="To the dead letters",
    ).page


def _outcome(answer: Mapping[str, Any]) -> list[str]:
    sentences = [
        f"Remaining: {counted(answer['remaining'], 'dead letter')}."
        if answer["remaining"]
        else "No dead letter of the plan remains."
    ]
    if answer["settled"] or answer["failed"] or answer["waiting"]:
        sentences.append(
            f"Put back: {answer['settled']:,} took effect, {answer['failed']:,} failed again, {answer['waiting']:,} wait in their queue."
        )
    if answer["messages"]:
        sentences.append(_reread(answer))
    sentences += [
        f"Left as they are: {count:,}: {SENTENCES[Obstacle(obstacle)]}."
        for obstacle, count in answer["refused"].items()
    ]
    return sentences


def _reread(answer: Mapping[str, Any]) -> str:
    corrected, added = counted(answer["corrected"], "event"), counted(answer["added"], "event")
    return f"Read again: {counted(answer['messages'], 'message')}. Corrected: {corrected}; added: {added}."


async def _would_discard(visit: PageRequest, values: Values) -> DryRun:
    order = {**stated_in(values, DiscardMany, *_FILTER), "dry_run": True, "why": values["why"]}
    answer = await visit.call_api("POST /v1/dead-letters/discard", order)
    count = answer["remaining"]
    return DryRun(
        sentences=[
            f"This gives {counted(count, 'dead letter')} up, for good: listed as discarded, never replayed.",
            "Their messages take no effect, their notifications are not sent.",
        ],
        hidden={"total": str(count)},
        refusal=None if count else "None waits that the filter means.",
    )


async def _discard(visit: PageRequest, values: Values) -> Shown:
    order = {**stated_in(values, DiscardMany, *_FILTER), "why": values["why"]}
    progress, answer = await next_part(visit, "POST /v1/dead-letters/discard", order, values)
    return WorkProgress(
        progress=progress,
        sentences=[f"Discarded: {progress.done:,}. Remaining: {answer['remaining']:,}."],
        order=stated(values, _FILTER),
        then=LIST,
        then_label="To the dead letters",
    ).page


async def _would_replay_one(visit: PageRequest, _values: Values) -> DryRun:
    one = await visit.call_api("GET /v1/dead-letters/{id}", id=visit.path("dead_letter_id"))
    obstacle = one["resolution"] or one["obstacle"]
    code = one["occurrences"]
    sentences = [
        f"Dead letter {one['dead_letter_id']} of {one['carrier_id']}: {IN_WORDS[Way(one['way'])]}."
    ]
    if code is not None:
        sentences.append(
            f"It is about {counted(code['events'], 'event')} on {counted(code['shipments'], 'shipment')}."
            " Nothing changes before the code is mapped."
        )
    return DryRun(
        sentences=sentences,
        refusal=None
        if obstacle is None
        else f"It cannot be replayed: {SENTENCES[Obstacle(obstacle)]}.",
    )


async def _replay_one(visit: PageRequest, values: Values) -> Done | Shown:
    dead_letter_id = visit.path("dead_letter_id")
    progress, answer = await next_part(
        visit,
        "POST /v1/dead-letters/{id}/replay",
        {"why": values["why"]},
        values,
        id=dead_letter_id,
    )
    then = ONE.format(dead_letter_id=answer["dead_letter_id"])
    if not progress.goes_on and not values.get("cursor"):
        return Done(
            sentence=f"Dead letter {dead_letter_id} is replayed: {IN_WORDS[Way(answer['way'])]}.",
            then=then,
        )
    sentences = [_reread({**answer, **progress.sums})]
    return WorkProgress(
        progress=progress, sentences=sentences, order={}, then=then, then_label="To the dead letter"
    ).page


async def _would_discard_one(visit: PageRequest, _values: Values) -> DryRun:
    one = await visit.call_api("GET /v1/dead-letters/{id}", id=visit.path("dead_letter_id"))
    lost = {
        "message": "Its message takes no effect; its body is stored as long as any.",
        "code": "Its events stay unmapped. The code makes a new dead letter when it is pushed again.",
        "notification": "Its subscriber is not notified of this change.",
    }
    return DryRun(
        sentences=[
            f"Dead letter {one['dead_letter_id']} of {one['carrier_id']} is given up: {one['cause']}.",
            lost[one["kind"]],
        ],
        refusal=None
        if one["resolution"] is None
        else f"It cannot be discarded: {SENTENCES[Obstacle(one['resolution'])]}.",
    )


async def _discard_one(visit: PageRequest, values: Values) -> Done:
    dead_letter_id = visit.path("dead_letter_id")
    await visit.call_api(
        "POST /v1/dead-letters/{id}/discard", {"why": values["why"]}, id=dead_letter_id
    )
    return Done(
        sentence=f"Dead letter {dead_letter_id} is discarded.",
        then=ONE.format(dead_letter_id=int(dead_letter_id)),
    )


def dead_letter_actions() -> list[FormAction]:
    """Return the rows of the table."""
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST}
    return [
        FormAction(
            path=LIST + "/replay",
            title="Replay dead letters",
            button="Replay them",
            inputs=_replay_inputs,
            dry_run=_would_replay,
            carry_out=_replay,
            back=LIST,
            **about,
        ),
        FormAction(
            path=LIST + "/discard",
            title="Discard dead letters",
            button="Discard them",
            inputs=_filter_inputs,
            dry_run=_would_discard,
            carry_out=_discard,
            is_drastic=True,
            back=LIST,
            **about,
        ),
        FormAction(
            path=ONE + "/replay",
            title="Replay dead letter {dead_letter_id}",
            button="Replay it",
            dry_run=_would_replay_one,
            carry_out=_replay_one,
            back=ONE,
            **about,
        ),
        FormAction(
            path=ONE + "/discard",
            title="Discard dead letter {dead_letter_id}",
            button="Discard it",
            dry_run=_would_discard_one,
            carry_out=_discard_one,
            is_drastic=True,
            back=ONE,
            **about,
        ),
    ]
