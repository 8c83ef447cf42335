"""Findings in the order in which they are read."""

from dataclasses import replace

from statesvc.health.finding import Finding, Urgency, worst_first

DEAD = Finding(urgency=Urgency.NOW, about="processes", text="no worker", page="RoleDown")
WAITS = [
    Finding(urgency=Urgency.NOW, about=name, text="waits", page="Lag", cause="RoleDown")
    for name in ("fedex", "ups")
]
NOTE = Finding(urgency=Urgency.NOTE, about="gls", text="on hold", page="CarrierHeld")
OTHER = Finding(urgency=Urgency.NOW, about="pushes", text="refused", page="AckAvailability")


def test_the_worst_stands_first_and_what_follows_from_it_right_behind_it() -> None:
    assert worst_first([NOTE, *WAITS, DEAD, OTHER]) == [DEAD, *WAITS, OTHER, NOTE]


def test_two_findings_of_one_cause_are_followed_once() -> None:
    other = Finding(urgency=Urgency.NOW, about="processes", text="no sealer", page="RoleDown")
    assert worst_first([*WAITS, DEAD, other]) == [DEAD, *WAITS, other]


def test_what_follows_from_nothing_that_was_found_stands_for_itself() -> None:
    assert worst_first([NOTE, *WAITS]) == [
        *(replace(finding, cause=None) for finding in WAITS),
        NOTE,
    ]
