"""Carriers: rates, silence, rollout, a candidate's differences, unknown codes; and their forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.addons.console.carrier_board import CarrierLine, read_board
from statesvc.addons.console.charts import Bar, bars
from statesvc.addons.console.operation_forms import inputs_of
from statesvc.addons.console.screen import (
    Done,
    DryRun,
    FormAction,
    Input,
    PageRequest,
    Redirect,
    Screen,
    Values,
)
from statesvc.api.code_mapping_operations import list_code_mappings, list_unmapped_codes
from statesvc.api.queue_operations import QuotaChange
from statesvc.api.rollout_operations import RolloutChange
from statesvc.database.pool import Connections
from statesvc.http.inner_calls import checked_body
from statesvc.http.keys.key_store import Scope
from statesvc.http.problem import Code, Problem
from statesvc.http.views import draw
from statesvc.reading.reading_name import is_foreign
from statesvc.reading.rollout_store import ALL, Rollout, RolloutSettings, refusals

LIST: Final = "/console/carriers"
ONE: Final = LIST + "/{carrier_id}"
_DIFFERENCES: Final = 20
_PUSHED: Final = "Webhooks of the last day, hour by hour: new, repeated, refused"


@dataclass(frozen=True, slots=True)
class CarrierScreens:
    pool: Connections
    carriers: Mapping[str, Carrier]

    async def show_list(self, _visit: PageRequest) -> Mapping[str, Any]:
        """Show those that push, trouble first; the others by name."""
        async with self.pool.connection() as connection:
            board = await read_board(connection, sorted(self.carriers))
        lines = [(line, _chart(line, width=96)) for line in board.lines if not line.is_quiet]
        quiet = sorted(line.carrier_id for line in board.lines if line.is_quiet)
        return {"lines": lines, "quiet": quiet, "all_held": board.all_held, "all": ALL}

    async def show_one(self, visit: PageRequest) -> Mapping[str, Any] | Redirect:
        """Show a carrier, with its candidate's differences and its codes."""
        if visit.path("carrier_id") == "all":
            return Redirect(LIST)
        carrier = self._carrier(visit)
        carrier_id = carrier.carrier_id
        line = await self._line(carrier_id)
        rollout = await visit.call_api("GET /v1/rollouts/{carrier_id}", carrier_id=carrier_id)
        diffs = None
        if rollout["candidate"] is not None:
            diffs = await visit.call_api(
                "GET /v1/rollouts/{carrier_id}/diffs", carrier_id=carrier_id, limit=_DIFFERENCES
            )
        codes = await visit.call_api("GET /v1/unmapped-codes", carrier_id=carrier_id)
        mappings = await visit.call_api(
            "GET /v1/carriers/{carrier_id}/mappings", carrier_id=carrier_id, limit=50
        )
        quotas = (await visit.call_api("GET /v1/quotas"))["items"]
        return {
            "title": carrier.name,
            "carrier": carrier,
            "line": line,
            "chart": _chart(line, label_every=4),
            "rollout": rollout,
            "diffs": diffs,
            "codes": draw(list_unmapped_codes.view, codes),
            "mappings": draw(list_code_mappings.view, mappings) if mappings["items"] else [],
            "quota": next((one for one in quotas if one["carrier_id"] == carrier_id), None),
        }

    async def rollout_inputs(self, visit: PageRequest) -> Sequence[Input]:
        """Return the inputs, filled with the present rollout."""
        carrier = self._carrier(visit)
        rollout = await visit.call_api(
            "GET /v1/rollouts/{carrier_id}", carrier_id=carrier.carrier_id
        )
        versions = ", ".join(carrier.normalizers)
        guard = rollout["guard"] or {
            "messages": "",
            "errors_percent": None,
            "differences_percent": None,
        }
        return [
            Input(
                name="stable",
                label="Stable reading",
                value=rollout["stable"] or "",
                hint=f"Another fleet's name@version, which reads what the share leaves. Empty: our version {carrier.stable}.",
            ),
            Input(
                name="candidate",
                label="Candidate",
                value=rollout["candidate"] or "",
                hint=f"One of our versions ({versions}), or another fleet's name@version. Empty: the rollout ends.",
            ),
            Input(
                name="percent",
                label="Share of its messages, in percent",
                type="number",
                value=str(rollout["percent"]),
            ),
            Input(
                name="shadow",
                label="Shadow: read every message with both versions, and store the differences",
                type="checkbox",
                value="1" if rollout["shadow"] else "",
            ),
            Input(
                name="guard_messages",
                label="Guard: number of the last messages that count",
                type="number",
                value=str(guard["messages"]),
                hint="Empty: no guard. The share falls to 0 by itself when one of the two bounds is passed.",
            ),
            Input(
                name="guard_errors",
                label="At most this percentage may fail",
                value=_number(guard["errors_percent"]),
            ),
            Input(
                name="guard_differences",
                label="At most this percentage may be read differently",
                value=_number(guard["differences_percent"]),
                hint="Needs the shadow.",
            ),
        ]

    async def would_change(self, visit: PageRequest, values: Values) -> DryRun:
        """Preview the rollout before and after."""
        carrier = self._carrier(visit)
        rollout = await visit.call_api(
            "GET /v1/rollouts/{carrier_id}", carrier_id=carrier.carrier_id
        )
        line = await self._line(carrier.carrier_id)
        change = _changes_of(values)
        wanted = checked_body(RolloutChange, {**change, "why": values["why"]})
        refused = "; ".join(each.why for each in refusals(_wanted_rollout(wanted), carrier))
        sentences = [
            f"Now: {_rollout_in_words(rollout)}.",
            f"Then: {_rollout_in_words(change)}, from the next claim of every worker on.",
        ]
        hour = line.hours[-1].accepted + line.hours[-2].accepted
        if change["percent"]:
            sentences.append(
                f"About {hour * int(change['percent']) / 100:,.0f} messages of the last two hours would have gone to the candidate."
            )
        if change["percent"] and is_foreign(change["stable"] or change["candidate"]):
            sentences.append(
                f"Rehearse the way back while the share is small: statesvc rollout drill {carrier.carrier_id}."
            )
        return DryRun(sentences=sentences, refusal=refused or None)

    async def rollout(self, visit: PageRequest, values: Values) -> Done:
        carrier_id = visit.path("carrier_id")
        change = {**_changes_of(values), "why": values["why"]}
        await visit.call_api("PUT /v1/rollouts/{carrier_id}", change, carrier_id=carrier_id)
        return Done(sentence="The rollout is changed.", then=f"{LIST}/{carrier_id}")

    async def quota_inputs(self, visit: PageRequest) -> Sequence[Input]:
        """Return the inputs, filled with the present quota."""
        carrier_id = self._carrier(visit).carrier_id
        items = (await visit.call_api("GET /v1/quotas"))["items"]
        present = next((one for one in items if one["carrier_id"] == carrier_id), None)
        return inputs_of(QuotaChange, "weight", "in_flight_max", values=present)

    async def would_set_quota(self, visit: PageRequest, values: Values) -> DryRun:
        """Preview the quota before and after."""
        present = {one.name: one.value for one in await self.quota_inputs(visit)}
        visit.calls.check("PUT /v1/quotas/{carrier_id}", _quota(values))
        bound = values.get("in_flight_max") or "no bound"
        return DryRun(
            sentences=[
                f"Now: weight {present['weight']}, {present['in_flight_max'] or 'no bound'} in hand.",
                f"Then: weight {values.get('weight', '')}, {bound} in hand, from the next claim of every worker on.",
            ]
        )

    async def set_quota(self, visit: PageRequest, values: Values) -> Done:
        carrier_id = self._carrier(visit).carrier_id
        await visit.call_api("PUT /v1/quotas/{carrier_id}", _quota(values), carrier_id=carrier_id)
        return Done(sentence="The quota is set.", then=f"{LIST}/{carrier_id}")

    async def _line(self, carrier_id: str) -> CarrierLine:
        async with self.pool.connection() as connection:
            return (await read_board(connection, [carrier_id])).lines[0]

    def _carrier(self, visit: PageRequest) -> Carrier:
        carrier = self.carriers.get(visit.path("carrier_id"))
        if carrier is None:
            raise Problem(Code.UNKNOWN_CARRIER, "no such carrier_id; the list of carriers has them")
        return carrier


def _chart(line: CarrierLine, *, width: int | None = None, label_every: int = 0) -> Any:  # noqa: ANN401 - markup
    return bars(
        [Bar(f"{hour.begins:%H:%M}", hour.counts) for hour in line.hours],
        title=_PUSHED,
        width=width,
        height=22 if width else 0,
        label_every=label_every,
        unit=None if width else " an hour",
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _quota(values: Values) -> dict[str, Any]:
    return {
        "weight": values.get("weight", ""),
        "in_flight_max": values.get("in_flight_max") or None,
        "why": values["why"],
    }


def _changes_of(values: Values) -> dict[str, Any]:
    candidate, stable = values.get("candidate") or None, values.get("stable") or None
    if candidate is None:
        return {"stable": stable, "candidate": None, "percent": 0, "shadow": False, "guard": None}
    guard = None
    if values.get("guard_messages"):
        guard = {
            "messages": values["guard_messages"],
            "errors_percent": values.get("guard_errors") or None,
            "differences_percent": values.get("guard_differences") or None,
        }
    return {
        "stable": stable,
        "candidate": candidate,
        "percent": values.get("percent") or "0",
        "shadow": values.get("shadow") == "1",
        "guard": guard,
    }


def _wanted_rollout(change: RolloutChange) -> RolloutSettings:
    return change.applied_to(Rollout(carrier_id="")) or RolloutSettings(candidate=None)


def _rollout_in_words(rollout: Mapping[str, Any]) -> str:
    if rollout["candidate"] is None:
        return f"no candidate, {rollout['stable'] or 'the stable version'} reads everything"
    rest = f", {rollout['stable']} the rest" if rollout["stable"] else ""
    shadow = ", all others are read by both in the shadow" if rollout["shadow"] else ""
    guard = rollout["guard"]
    guarded = "" if guard is None else f"; a guard over {guard['messages']} messages"
    return f"version {rollout['candidate']} reads {rollout['percent']} %{rest}{shadow}{guarded}"


def carrier_pages(
    pool: Connections, carriers: Mapping[str, Carrier] = CARRIERS
) -> tuple[list[Screen], list[FormAction]]:
    pages = CarrierScreens(pool, carriers)
    about: dict[str, Any] = {"scope": Scope.OPS, "section": LIST, "back": ONE}
    return [
        Screen(
            path=LIST,
            title="Carriers",
            template="carriers.html",
            scope=Scope.OPS,
            show=pages.show_list,
            menu="Carriers",
        ),
        Screen(
            path=ONE,
            title="Carrier",
            template="carrier.html",
            scope=Scope.OPS,
            show=pages.show_one,
            section=LIST,
        ),
    ], [
        FormAction(
            path=ONE + "/rollout",
            title="Change the rollout of {carrier_id}",
            button="Turn it",
            inputs=pages.rollout_inputs,
            dry_run=pages.would_change,
            carry_out=pages.rollout,
            **about,
        ),
        FormAction(
            path=ONE + "/quota",
            title="Quota of {carrier_id}",
            button="Set it",
            inputs=pages.quota_inputs,
            dry_run=pages.would_set_quota,
            carry_out=pages.set_quota,
            **about,
        ),
    ]
