"""The table in `docs/authentication.md`, made of `CARRIERS`.

`python -m tests.authentication_page --write` writes it anew.
"""

import re
import sys
from pathlib import Path
from typing import Final

from events.carriers import CARRIERS
from events.carriers.carrier import ShipperChoice
from statesvc.cli.carrier_authentication import binds_body
from statesvc.ingress.scheme_words import described

PAGE: Final = Path(__file__).parents[1] / "docs" / "authentication.md"
_TABLE: Final = re.compile(r"(?<=--write -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table() -> str:
    """Return the table of the carriers that document more than that the shipper may choose."""
    rows = ["| carrier | sends | proves | or what you choose |", "|---|---|---|---|"]
    for carrier_id, carrier in sorted(CARRIERS.items()):
        if carrier.authentication != (ShipperChoice(),):
            sends = " or ".join(described(carrier.schemes()))
            proves = "body" if binds_body(carrier.schemes()) else "sender"
            rows.append(
                f"| {carrier_id} | {sends} | {proves} | {'yes' if carrier.leaves_choice else ''} |"
            )
    return "\n".join(rows) + "\n"


def written() -> str | None:
    """Return the table as the page has it."""
    found = _TABLE.search(PAGE.read_text("utf-8"))
    return found.group() if found else None


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(_TABLE.sub(lambda _: table(), PAGE.read_text("utf-8")), "utf-8")
