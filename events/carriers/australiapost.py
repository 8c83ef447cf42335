"""Australia Post: answers of the tracking API. An event has no code: its whole text decides.

An item of the list is an article with its events, or a consignment with the articles inside, and of
StarTrack with events of its own. The number is the tracked number; several articles of a
consignment are shipments of their own.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, text in lower case): of an `event` or of the rollup `status`. A text that ends in `*` has
# a place at its end.
CODES: Final = kit.meanings("australiapost_codes.csv")

# Scans in Queensland, Chicago and New Zealand are printed with the offset of Sydney.
CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Australia/Sydney", prints_home=True)
_SENTENCES: Final = tuple(
    (words.removesuffix("*"), meaning)
    for (level, words), meaning in CODES.items()
    if level == "event" and words.endswith("*")
)
_AUSTRALIAN: Final = re.compile(r"(?P<city>.+) (?P<state>ACT|NSW|NT|QLD|SA|TAS|VIC|WA)")
_FOREIGN: Final = re.compile(r"(?P<city>.+) \((?P<country>[A-Z]{2})\)")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of an answer; numbers with errors have none."""
    for where, result in _results(kit.read_json(body), rejections):
        articles = list(
            _articles(result.get("trackable_items"), f"{where}/trackable_items", rejections)
        )
        tracked = kit.text(result.get("tracking_id"))
        for pointer, article in articles:
            number = (
                tracked
                if len(articles) == 1 and tracked
                else kit.text(article.get("article_id")) or tracked
            )
            yield from _events(article, number, pointer, received_at, rejections)
        for pointer, consignment in _consignments(result, where, rejections):
            number = kit.text(consignment.get("consignment_id")) or tracked
            yield from _events(consignment, number, pointer, received_at, rejections)


def _consignments(
    result: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the consignments that have events besides their articles.

    An item of the list, or `consignment` of the result.
    """
    for index, item in kit.objects_at(result, "trackable_items", where, rejections, required=False):
        if "items" in item and kit.as_list(item.get("events")):
            yield f"{where}/trackable_items/{index}", item
    consignment = kit.child(result, "consignment")
    if kit.as_list(consignment.get("events")):
        yield f"{where}/consignment", consignment


def _results(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is not dict or not {"tracking_results", "errors"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Australia Post"
        )
    for index, result in kit.objects_at(body, "tracking_results", "", rejections):
        if not {"trackable_items", "consignment"} & result.keys():
            kit.objects_at(result, "trackable_items", f"/tracking_results/{index}", rejections)
        yield f"/tracking_results/{index}", result


def _articles(
    items: object, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    for index, item in kit.objects(items, where, rejections):
        if "items" in item:
            pointer = f"{where}/{index}/items"
            listed = kit.objects_at(item, "items", f"{where}/{index}", rejections)
            yield from (
                (f"{pointer}/{at}", each)
                for at, each in listed
                if kit.as_list(each.get("events")) or not kit.as_list(item.get("events"))
            )
        else:
            yield f"{where}/{index}", item


def _events(
    article: kit.JsonObject,
    number: str | None,
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Reading]:
    service = kit.text(article.get("product_type"))
    for index, event in kit.objects_at(
        article, "events", where, rejections, required="status" not in article
    ):
        description = kit.text(event.get("description"))
        at = _place(kit.text(event.get("location")))
        yield from kit.reading_of(
            kit.Scan(
                where=f"{where}/events/{index}",
                raw=kit.Raw(),
                meaning=_meaning(kit.collapse(description or "").casefold()),
                time=CLOCK.read(kit.text(event.get("date")), at, received_at=received_at),
                place=at,
                description=description,
            ),
            number,
            rejections,
            service=service,
        )
    status = kit.text(article.get("status"))
    rollup = CODES.get(("status", (status or "").casefold()))
    if not kit.as_list(article.get("events")) and rollup is not None:
        yield from kit.reading_of(
            kit.Scan(
                where=f"{where}/status",
                raw=kit.Raw(),
                meaning=rollup,
                time=CLOCK.read(None, received_at=received_at),
                description=status,
            ),
            number,
            rejections,
            service=service,
        )


def _meaning(words: str) -> kit.Meaning:
    known = CODES.get(("event", words))
    return known or next(
        (meaning for start, meaning in _SENTENCES if words.startswith(start)), kit.UNMAPPED
    )


def _place(printed: str | None) -> kit.EventPlace:
    """Read `CHULLORA NSW`, `CHICAGO (US)`, or whatever else is printed as a city."""
    if printed is None:
        return kit.place()
    if domestic := _AUSTRALIAN.fullmatch(printed):
        return kit.place(city=domestic["city"], region=domestic["state"], country="AU")
    if foreign := _FOREIGN.fullmatch(printed):
        return kit.place(city=foreign["city"], country=foreign["country"])
    return kit.place(city=printed)


CARRIER: Final = kit.Carrier(
    carrier_id="australiapost",
    name="Australia Post",
    number_fields=("tracking_id", "article_id", "consignment_id"),
    normalizers={"1": normalize},
    formats=("Tracking API JSON",),
    authentication=(kit.ShipperChoice(),),
)
