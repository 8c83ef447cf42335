"""Plays incidents, by name or all ten, and prints how each went:
`python -m tests.soak.incidents [NAME ...] [--write]`.

`--write` puts the figures into the table of docs/soak.md, those of the incidents that were played.
"""

import argparse
import sys

from tests.soak.incidents.incident import play
from tests.soak.incidents.table import PAGE, row, written
from tests.soak.incidents.ten import TEN


def main() -> int:
    """Play the incidents; return 1 where one did not go as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(each.name for each in TEN)
    )
    parser.add_argument("--write", action="store_true", help=f"the figures into {PAGE.name}")
    options = parser.parse_args()
    failed = False
    for incident in TEN:
        if options.names and incident.name not in options.names:
            continue
        try:
            course = play(incident)
        except (AssertionError, TimeoutError) as error:
            failed = True
            sys.stdout.write(f"{incident.name}: FAILED: {error!r}\n")
            continue
        sys.stdout.write(
            f"{row(incident, course)}\n  {course.alert.annotations['summary']}; also"
            f" {', '.join(course.also) or 'nothing'}\n"
        )
        sys.stdout.flush()
        if options.write:
            PAGE.write_text(
                written(PAGE.read_text("utf-8"), incident, row(incident, course)), "utf-8"
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
