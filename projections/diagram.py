"""The life cycle as a page: `python -m projections.diagram` writes docs/lifecycle.md from the declaration. Not part of the service."""

from pathlib import Path
from typing import Final

from events.vocabulary import Status
from projections.lifecycle import ACTIVE, MOVES, SCANS, TERMINAL, Flag

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "lifecycle.md"
_GROUP: Final = "active"


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Life cycle of a shipment",
            "",
            "Written by `python -m projections.diagram` from `projections/lifecycle.py`; change the rules there.",
            "",
            "Arrows are the moves that scans cause, with the flag that they raise. Inside *active* a parcel moves freely. No scan is",
            "illegal: one that has no arrow leaves the status as it is.",
            "",
            "```mermaid",
            *_diagram(),
            "```",
            "",
            "## Every answer",
            "",
            "Row: the status. Column: what is scanned. `→` moves there, `·` stays; a number is the flag that is raised:",
            "",
            *(f"{number}. `{flag.value}`" for number, flag in enumerate(Flag, 1)),
            "",
            "A flag in brackets: only if the parcel was out for delivery again since it was delivered.",
            "",
            *_table(),
            "",
        ]
    )


def _group(status: Status) -> str:
    return _GROUP if status in ACTIVE else status.value


def _diagram() -> list[str]:
    """Moves between statuses, those that all active statuses share drawn once from their group."""
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
    lines += [f"    {source} --> {to}" + (f" : {flag.value}" if flag else "") for source, to, flag in arrows]
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
    """Writes the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
