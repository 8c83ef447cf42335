"""Shipments in words for the command line."""

from collections.abc import Iterator

from statesvc.http.views import Answer, Denied

UNREAD = "or it has not been read yet: `statesvc queue` shows what waits"


def none_found(page: Answer) -> Iterator[str]:
    if page["items"]:
        return
    if page.get("sought") or page.get("reference"):
        named = (
            "a number with this reference"
            if page.get("reference")
            else "this number, or one that ends or begins so"
        )
        yield Denied(f"no carrier named {named}, {UNREAD}")
    else:
        yield Denied("no shipment fits")


def others(shipment: Answer) -> str:
    return ", ".join(other["discriminator"] for other in shipment["others"])


def happened(event: Answer) -> str:
    return str(event["status"] or event["kind"])


def where(event: Answer) -> str:
    return ", ".join(
        filter(None, (event["location"][name] for name in ("city", "region", "country")))
    )


def observed(page: Answer) -> Iterator[str]:
    for each in page["observations"]:
        yield (
            f"observed {each['recorded_at']}: {each['kind']}, {each['hours']} h passed at"
            f" {each['since']}"
        )
