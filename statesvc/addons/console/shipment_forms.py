"""Forms for a shipment: place or release a legal hold on its number, make its personal data unreadable."""

from collections.abc import Mapping
from typing import Any, Final

from statesvc.addons.console.screen import Done, DryRun, FormAction, PageRequest, Values
from statesvc.addons.console.shipment_screens import CALL, LIST, ONE, AskedShipment
from statesvc.http.keys.key_store import Scope
from statesvc.http.views import counted
from statesvc.shipments.plain_names import carrier_name

_HOLDS: Final = "/v1/legal-holds"


async def _hold_in_force(visit: PageRequest, asked: AskedShipment) -> Mapping[str, Any] | None:
    holds = (await visit.call_api(f"GET {_HOLDS}", **asked.number, limit=1))["items"]
    return holds[0] if holds else None


def _named(asked: AskedShipment) -> str:
    return f"{carrier_name(asked.carrier_id)} {asked.tracking_number}"


async def _bearers(visit: PageRequest, asked: AskedShipment) -> str:
    """Return how many shipments have the number."""
    shipment = await visit.call_api(f"GET {CALL}", **asked.number)
    return counted(1 + len(shipment["others"]), "shipment")


async def _would_hold(visit: PageRequest, _values: Values) -> DryRun:
    asked = AskedShipment.of(visit)
    hold = await _hold_in_force(visit, asked)
    return DryRun(
        sentences=[
            f"The raw messages that name {_named(asked)} outlive their retention, and nobody erases it, until the hold is released.",
            f"It holds for all that bear the number: {await _bearers(visit, asked)} now.",
        ],
        refusal=None
        if hold is None
        else f"A legal hold stands on it already, since {hold['placed_at']}, by {hold['placed_by']}.",
    )


async def _hold(visit: PageRequest, values: Values) -> Done:
    asked = AskedShipment.of(visit)
    await visit.call_api(f"POST {_HOLDS}", {**asked.number, "why": values["why"]})
    return Done(sentence=f"A legal hold stands on {_named(asked)}.", then=asked.path())


async def _would_release(visit: PageRequest, _values: Values) -> DryRun:
    asked = AskedShipment.of(visit)
    hold = await _hold_in_force(visit, asked)
    if hold is None:
        return DryRun(sentences=[], refusal="No legal hold stands on it.")
    return DryRun(
        sentences=[
            f"It was placed at {hold['placed_at']} by {hold['placed_by']}: {hold['why']}",
            f"From now on the raw messages of {_named(asked)} end with their retention, and it can be erased.",
        ]
    )


async def _release(visit: PageRequest, values: Values) -> Done:
    asked = AskedShipment.of(visit)
    await visit.call_api(f"POST {_HOLDS}/release", {**asked.number, "why": values["why"]})
    return Done(sentence=f"The legal hold on {_named(asked)} is released.", then=asked.path())


async def _would_erase(visit: PageRequest, _values: Values) -> DryRun:
    asked = AskedShipment.of(visit)
    shipment, hold = (
        await visit.call_api(f"GET {CALL}", **asked.given(as_of=False)),
        await _hold_in_force(visit, asked),
    )
    which = (
        await _bearers(visit, asked)
        if asked.discriminator is None
        else "this one of its number alone"
    )
    sentences = [
        f"Signers, addresses, texts and raw messages of {_named(asked)} become unreadable, for ever: {which}. It cannot be undone.",
        f"What names nobody stays: its {counted(shipment['version'], 'event')}, their hashes and proofs.",
        "Messages that come later are applied, and leave nothing personal.",
    ]
    if shipment["erased"]:
        sentences.append(
            "It was erased before; again is for messages that came by another way since."
        )
    return DryRun(
        sentences=sentences,
        refusal=None
        if hold is None
        else f"A legal hold stands on it ({hold['why']}): release it first.",
    )


async def _erase(visit: PageRequest, values: Values) -> Done:
    asked = AskedShipment.of(visit)
    order = {"why": values["why"], "discriminator": asked.discriminator}
    made = await visit.call_api(f"POST {CALL}/erase", order, **asked.number)
    sentence = f"Erased: {counted(len(made['erased']), 'shipment')}. Backups may hold a copy of the key until {made['complete_at']}."
    if not made["survives_restore"]:
        sentence += (
            " No place for tombstones is configured, so a restore from a backup would undo it."
        )
    if made["dead_letters_left"]:
        sentence += " There are more dead letters to search: `statesvc erase` searches all of them."
    return Done(sentence=sentence, then=asked.path())


def shipment_actions() -> list[FormAction]:
    about: dict[str, Any] = {"scope": Scope.ADMIN, "section": LIST, "back": ONE}
    return [
        FormAction(
            path=ONE + "/hold",
            title="Legal hold on {tracking_number}",
            button="Place it",
            dry_run=_would_hold,
            carry_out=_hold,
            **about,
        ),
        FormAction(
            path=ONE + "/release-hold",
            title="Release the legal hold on {tracking_number}",
            button="Release it",
            dry_run=_would_release,
            carry_out=_release,
            is_drastic=True,
            **about,
        ),
        FormAction(
            path=ONE + "/erase",
            title="Erase the personal data of {tracking_number}",
            button="Erase it for ever",
            dry_run=_would_erase,
            carry_out=_erase,
            is_drastic=True,
            **about,
        ),
    ]
