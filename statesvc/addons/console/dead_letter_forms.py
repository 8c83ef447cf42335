"""Forms for dead letters: replay one or a group, a canary first; discard."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statesvc.addons.console.operation_forms import inputs_of, stated_in
from statesvc.addons.console.progress_page import WorkProgress, next_part, stated
from statesvc.addons.console.screen import DryRun, FormAction, Input, PageRequest, Shown, Values
from statesvc.api.dead_letter_operations import LIST
from statesvc.api.dead_letter_replay_models import ReplayMany
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import counted
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way
from statesvc.repair.dead_letters.replay_pace import ReplayEnd, ReplayLimits

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


def dead_letter_actions() -> list[FormAction]:
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
    ]
