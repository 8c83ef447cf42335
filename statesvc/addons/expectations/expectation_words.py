"""Expectations in words, alike on the command line and the console."""

from collections.abc import Iterator

from statesvc.http.views import Answer, counted


def previewed(answer: Answer) -> Iterator[str]:
    least = "At least " if answer["counts_capped"] else ""
    yield (
        f"{least}{answer['rearmed']:,} of {counted(answer['shipments'], 'unfinished shipment')} get"
        " another deadline."
    )
    kinds = ", ".join(
        f"{count:,} {kind.replace('_', ' ')}" for kind, count in answer["observed_at_once"].items()
    )
    yield (
        f"{least}this would be observed at once, and notified: {kinds}."
        if kinds
        else ("Nothing would be observed at once.")
    )
