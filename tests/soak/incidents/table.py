"""The table of incidents in docs/soak.md, one row each, in the order of TEN."""

from typing import Final

from tests.soak.incidents.incident import Course, Incident
from tests.soak.incidents.on_call import DOCS
from tests.soak.incidents.ten import TEN

PAGE: Final = DOCS / "soak.md"
BEGIN: Final = "<!-- incidents: python -m tests.soak.incidents --write -->\n"
END: Final = "<!-- incidents end -->\n"
HEAD: Final = (
    "| incident | alert | fired after | in full | page: repair | in | silent after"
    " |\n|---|---|---:|---:|---|---:|---:|\n"
)


def row(incident: Incident, course: Course) -> str:
    page = course.alert.annotations["runbook_url"].rpartition("/")[2].removesuffix(".md")
    link = f"[{page}](runbook/{page}.md)"
    cells = (
        incident.what,
        f"{incident.alert} ({course.alert.labels['severity']})",
        f"{course.fired_seconds:.0f} s (÷ {incident.factor:g})",
        _long(course.full_seconds),
        f"{link}: {incident.outside}" if incident.outside else link,
        f"{course.repair_seconds:.0f} s",
        f"{course.silent_seconds:.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def written(text: str, incident: Incident, line: str) -> str:
    """Return the page with this row in place of the incident's old one."""
    head, _, rest = text.partition(BEGIN)
    table, _, tail = rest.partition(END)
    rows = {_what(each): each for each in table.removeprefix(HEAD).splitlines() if each} | {
        incident.what: line
    }
    ordered = [rows[each.what] for each in TEN if each.what in rows]
    return f"{head}{BEGIN}{HEAD}{''.join(f'{each}{chr(10)}' for each in ordered)}{END}{tail}"


def _what(line: str) -> str:
    return line.split(" | ", 1)[0].removeprefix("| ")


def _long(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
