from statesvc.addons.console.overview import alarms_of
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


def test_roles_that_do_not_run_are_one_each() -> None:
    other = Finding(
        urgency=Urgency.NOW, about="processes", text="no notifier was heard of", page="RoleDown"
    )
    assert [alarm.first for alarm in alarms_of([NO_WORKER, other])] == [NO_WORKER, other]


def test_nothing_is_left_out() -> None:
    held = Finding(urgency=Urgency.NOTE, about="usps", text="on hold", page="CarrierHeld")
    findings = [late("usps", "Elsewhere"), NO_WORKER, late("ups", "RoleDown"), held]
    findings += [dead_letters("a"), dead_letters("b")]
    assert sorted(
        one.text for alarm in alarms_of(findings) for one in (alarm.first, *alarm.others)
    ) == sorted(one.text for one in findings)
