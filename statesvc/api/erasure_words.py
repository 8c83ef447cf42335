"""Legal holds and erasures in words, alike on the command line and on the console."""

from collections.abc import Iterator, Mapping
from typing import Any

from statesvc.api.key_words import NO_PLACE
from statesvc.http.views import Denied, counted


def would_hold(holds: Mapping[str, Any]) -> Iterator[str]:
    """Describe the effect of a hold. `holds`: those on the number."""
    for hold in holds["items"][:1]:
        yield Denied(
            f"This number is under a legal hold already, since {hold['placed_at']}, by"
            f" {hold['placed_by']}."
        )
    yield (
        "All raw messages that name the number outlive their retention, and nobody erases its"
        " shipments, until the hold is released."
    )


def would_release(holds: Mapping[str, Any]) -> Iterator[str]:
    if not holds["items"]:
        yield Denied("No legal hold is on this number.")
    for hold in holds["items"][:1]:
        yield f"It was placed at {hold['placed_at']} by {hold['placed_by']}: {hold['why']}"
    yield "From now on its raw messages end with their retention, and its shipments can be erased."


def would_erase(holds: Mapping[str, Any]) -> Iterator[str]:
    for hold in holds["items"][:1]:
        yield Denied(f"It is under a legal hold ({hold['why']}): release it first.")
    yield (
        "Signers, addresses, texts and raw messages become unreadable, for ever. It cannot be"
        " undone."
    )
    yield (
        "Its events, their hashes and proofs stay. Messages that come later are applied, and leave"
        " nothing personal."
    )


def erased(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer["erased"]:
        yield (
            f"Erased: {counted(len(answer['erased']), 'shipment')} ({', '.join(answer['erased'])})."
        )
    if answer["already_erased"]:
        yield f"Was erased before: {', '.join(answer['already_erased'])}."
    if answer["dead_letters_searched"]:
        named, searched = answer["dead_letters_named"], answer["dead_letters_searched"]
        yield f"{named} of {searched} dead letters of the carrier named it, and are unreadable now."
    yield (
        f"Complete on {answer['complete_at'][:10]}, when the last backup that holds the key expires"
        " (STATESVC_BACKUP_DAYS)."
    )
    if answer["tombstones"]:
        yield (
            f"A restore does not undo it: tombstones lie in {', '.join(answer['tombstones'])}, for"
            " `statesvc log fork`."
        )
    else:
        yield f"{NO_PLACE}."
