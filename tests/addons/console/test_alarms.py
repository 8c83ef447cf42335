from statesvc.addons.console.overview import alarms_of, headline
from statesvc.health.finding import Finding, Urgency, worst_first


def late(carrier_id: str, cause: str | None = None) -> Finding:
    return Finding(
        urgency=Urgency.NOW, about=carrier_id, text="900 messages wait", page="Lag", cause=cause
    )


def dead_letters(text: str) -> Finding:
    return Finding(urgency=Urgency.HUMAN, about="dead letters", text=text, page="DeadLettersGrow")


NO_WORKER = Finding(
    urgency=Urgency.NOW, about="processes", text="no worker was heard of", page="RoleDown"
)


def test_carriers_that_wait_for_a_dead_worker_are_one_thing_to_do() -> None:
    (alarm,) = alarms_of(
        worst_first([late("ups", "RoleDown"), NO_WORKER, late("fedex", "RoleDown")])
    )
    assert alarm.first == NO_WORKER
    assert [other.about for other in alarm.others] == ["ups", "fedex"]


def test_carriers_that_wait_without_a_known_cause_are_one() -> None:
    (alarm,) = alarms_of([late("ups"), late("fedex")])
    assert (alarm.first.about, len(alarm.others)) == ("ups", 1)


def test_what_follows_from_a_cause_that_was_not_found_stands_alone() -> None:
    (alarm,) = alarms_of(worst_first([late("ups", "RoleDown")]))
    assert alarm.first.about == "ups"


def test_roles_that_do_not_run_are_one_each() -> None:
    other = Finding(
        urgency=Urgency.NOW, about="processes", text="no notifier was heard of", page="RoleDown"
    )
    assert [alarm.first for alarm in alarms_of([NO_WORKER, other])] == [NO_WORKER, other]


def test_a_held_carrier_stands_above_processes_that_were_started_again() -> None:
    held = Finding(urgency=Urgency.NOTE, about="usps", text="on hold", page="CarrierHeld")
    again = Finding(urgency=Urgency.NOTE, about="processes", text="was started again")
    assert worst_first([again, again, held, NO_WORKER]) == [NO_WORKER, held, again, again]
    assert alarms_of([dead_letters("a")])[0].label == Urgency.HUMAN.label == "TODAY"


def test_nothing_is_left_out() -> None:
    held = Finding(urgency=Urgency.NOTE, about="usps", text="on hold", page="CarrierHeld")
    findings = [NO_WORKER, late("ups", "RoleDown"), dead_letters("a"), dead_letters("b"), held]
    assert sorted(
        one.text for alarm in alarms_of(findings) for one in (alarm.first, *alarm.others)
    ) == sorted(one.text for one in findings)


def test_the_headline_counts_causes() -> None:
    assert headline([]) == "Nothing needs you"
    assert headline(alarms_of([NO_WORKER, late("ups", "RoleDown")])) == "One thing needs you now"
    assert (
        headline(alarms_of([NO_WORKER, dead_letters("a")])) == "One thing needs you now, one today"
    )
    assert (
        headline(alarms_of([dead_letters("a"), dead_letters("b")])) == "One thing needs you today"
    )
