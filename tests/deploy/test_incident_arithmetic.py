"""The incidents' own arithmetic: time is made shorter, nothing else; each page has the commands
that its incident needs.
"""

from deploy.prometheus.rules import OBJECTIVES
from tests.soak.incidents.on_call import RUNBOOK, commands
from tests.soak.incidents.shortened import seconds, shortened, waits
from tests.soak.incidents.table import BEGIN, END, PAGE, written
from tests.soak.incidents.ten import TEN


def _expressions(factor: float) -> dict[str, str]:
    return {
        rule.get("alert") or rule["record"]: f"{rule['expr']} for {rule.get('for')}"
        for group in shortened(factor)["groups"]
        for rule in group["rules"]
    }


def test_windows_offsets_and_waits_become_shorter_and_thresholds_stay() -> None:
    short = _expressions(20)
    assert "[15000ms]" in short["statesvc:ack_latency:bad_ratio_5m"]
    assert "> 60 for 6000ms" in short["SealerStopped"]
    assert "> 720)" in short["CarrierSilent"]
    assert "offset 4320000ms" in short["CarrierSilent"]
    assert "[1080000ms], 4320) < 0 or statesvc_disk_free_bytes < 5e9" in short["DiskFilling"]


def test_a_wait_is_known_of_every_alert_and_whether_it_looks_at_windows() -> None:
    assert waits()["SealerStopped"] == (120, False)
    assert waits()["FormatChanged"] == (300, True)
    assert all(waits()[f"{one.alert}BurnsFast"] == (60, True) for one in OBJECTIVES)
    assert seconds("3d") == 259_200


def test_blocks_within_a_list_are_commands_too() -> None:
    assert 'statesvc psql --owner -c "SELECT pg_terminate_backend(PID)"' in commands(
        RUNBOOK / "AckLatency.md", "Do"
    )


def test_each_incident_has_a_row_which_a_newer_one_replaces() -> None:
    page = PAGE.read_text("utf-8")
    rows = page.partition(BEGIN)[2].partition(END)[0].splitlines()[2:]
    shown = {row.split(" | ")[0].removeprefix("| "): row for row in rows}
    assert list(shown) == [each.what for each in TEN], "python -m tests.soak.incidents --write"
    assert {each.alert for each in TEN} <= set(waits())
    for incident in TEN:
        assert written(page, incident, shown[incident.what]) == page
