"""The life cycle as a page: `python -m tests.lifecycle_page` writes docs/lifecycle.md from the
declaration.
"""

from pathlib import Path
from typing import Final

from events.vocabulary import Status
from projections.lifecycle import ACTIVE, MOVES, SCANS, TERMINAL, Flag

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "lifecycle.md"
_GROUP: Final = "active"
_MEANINGS: Final = {
    Status.INFO_RECEIVED: "the carrier expects the parcel",
    Status.PICKED_UP: "the carrier has it",
    Status.IN_TRANSIT: "it is on its way",
    Status.OUT_FOR_DELIVERY: "it is on the vehicle that delivers it",
    Status.DELIVERED: "it arrived",
    Status.UNKNOWN: "no event yet, or none with a status",
    Status.EXCEPTION: "delayed; `reason` has the cause",
    Status.DELIVERY_ATTEMPTED: "a delivery attempt failed",
    Status.AVAILABLE_FOR_PICKUP: "ready for the recipient",
    Status.RETURNING: "it is on its way back",
    Status.RETURNED: "it is back at the sender",
    Status.CANCELLED: "it will not be sent",
    Status.LOST: "lost, according to the carrier",
    Status.DESTROYED: "destroyed, according to the carrier",
}
_STEPS: Final = 5
"""How many of these a normal parcel takes, in order."""


def page() -> str:
    return "\n".join(
        [
            "# Life cycle of a shipment",
            "",
            (
                "Which statuses does a shipment take? `python -m tests.lifecycle_page` writes this"
                " page from `projections/lifecycle.py`."
            ),
            "",
            *_normal_parcel(),
            "",
            "## Moves",
            "",
            (
                "Arrows are moves caused by scans, with the flag raised. Inside *active* a parcel"
                " moves freely. A scan without an arrow"
            ),
            "is recorded and does not change the status.",
            "",
            "```mermaid",
            *_diagram(),
            "```",
            "",
            "## All combinations",
            "",
            (
                "Row: current status. Column: scanned status. `→`: moves there; `·`: stays; number:"
                " flag raised:"
            ),
            "",
            *(f"{number}. `{flag.value}`" for number, flag in enumerate(Flag, 1)),
            "",
            "In parentheses: only if the parcel was out for delivery again since its delivery.",
            "",
            *_table(),
            "",
        ]
    )


def _normal_parcel() -> list[str]:
    meanings = [f"`{status.value}`: {meaning}" for status, meaning in _MEANINGS.items()]
    steps = [f"{number}. {meaning}" for number, meaning in enumerate(meanings[:_STEPS], 1)]
    rest = [f"- {meaning}" for meaning in meanings[_STEPS:]]
    return ["## A normal parcel", "", *steps, "", "The rest:", "", *rest]


def _group(status: Status) -> str:
    return _GROUP if status in ACTIVE else status.value


def _diagram() -> list[str]:
    """Draw the moves between statuses; those that all active statuses share are drawn
    once from their group.
    """
    lines = ["stateDiagram-v2", f"    [*] --> {Status.UNKNOWN.value}", f"    state {_GROUP} {{"]
    lines += [f"        {status.value}" for status in ACTIVE]
    lines.append("    }")
    arrows: dict[tuple[str, str, Flag | None], None] = {}
    for source in Status:
        for scanned in SCANS:
            move = MOVES[source, scanned]
            if move.to is source or (source in ACTIVE and move.to in ACTIVE):
                continue
            arrows[_group(source), _group(move.to), move.flag] = None
    lines += [
        f"    {source} --> {to}" + (f" : {flag.value}" if flag else "")
        for source, to, flag in arrows
    ]
    lines += [f"    {status.value} --> [*]" for status in Status if status in TERMINAL]
    return lines


def _table() -> list[str]:
    numbers = {flag: str(number) for number, flag in enumerate(Flag, 1)}
    header = "| | " + " | ".join(scanned.value for scanned in SCANS) + " |"
    rows = [header, "|---" * (len(SCANS) + 1) + "|"]
    for source in Status:
        cells = []
        for scanned in SCANS:
            move = MOVES[source, scanned]
            cell = "·" if move.to is source else "→"
            if move.flag:
                cell += numbers[move.flag]
            if move.flag_if_out_again and move.flag_if_out_again is not move.flag:
                cell += f" ({numbers[move.flag_if_out_again]})"
            cells.append(cell)
        rows.append(f"| **{source.value}** | " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
