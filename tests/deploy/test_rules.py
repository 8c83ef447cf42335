"""Alert rules, and the arithmetic of incidents."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from statesvc.api import service_status as status
from statesvc.api.process_checks import DEATHS_MIN
from statesvc.api.status_facts import NOTIFICATION_SECONDS_MAX
from statesvc.health.database_sample import UNSEALED_SECONDS_MAX
from statesvc.spool.spool_state import SPOOL_SECONDS_MAX
from statesvc.telemetry import objectives
from tests.deploy.metric_names import unknown_metrics
from tests.soak.incidents.on_call import RUNBOOK
from tests.soak.incidents.shortened import RULES, rules, waits
from tests.soak.incidents.table import BEGIN, END, PAGE, written
from tests.soak.incidents.ten import TEN

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None and not os.environ.get("CI"),
    reason="promtool is not installed (Debian: prometheus)",
)

ACK = "statesvc_ingest_ack_duration_seconds"
APPLIED = "statesvc_messages_applied_lag_seconds"
FIRST = "statesvc_notifications_first_attempt_lag_seconds"

Series = dict[str, str]


def _acks(slow_per_minute: int) -> Series:
    labels = 'carrier="ups",outcome="accepted"'
    return {
        f"{ACK}_count{{{labels}}}": "0+100x300",
        f'{ACK}_bucket{{{labels},le="0.1"}}': f"0+{100 - slow_per_minute}x300",
        f'{ACK}_count{{carrier="ups",outcome="error"}}': "0+0x300",
    }


def _share(metric: str, bound: str, bad: int, labels: str = "") -> Series:
    comma = "," if labels else ""
    return {
        f"{metric}_count{{{labels}}}": "0+100x300",
        f'{metric}_bucket{{{labels}{comma}le="{bound}"}}': f"0+{100 - bad}x300",
    }


WELL: Final[Series] = {
    **_acks(0),
    **_share(APPLIED, "120.0", 0),
    **_share(FIRST, "10.0", 0, 'state="ready"'),
    'statesvc_promises_missing{promise="settled"}': "0x300",
    'statesvc_promises_behind_seconds{promise="settled"}': "200x300",
    'statesvc_processes{type="worker"}': "2x300",
    'statesvc_processes{type="notifier"}': "1x300",
    'statesvc_processes{type="sealer"}': "1x300",
    'statesvc_role_answers{role="up",type="ingress"}': "1x300",
    'statesvc_processes_silent{type="ingress"}': "0x300",
    'statesvc_processes_died{type="worker"}': "1x300",
    "statesvc_ingest_storage_low": "0x300",
    "statesvc_spool_oldest_seconds": "20x300",
    'up{job="statesvc",instance="a"}': "1x300",
    'statesvc_inbox_oldest_ready_seconds{carrier="ups"}': "3x300",
    'statesvc_inbox_oldest_held_seconds{carrier="ups"}': "0x300",
    'statesvc_refusals_total{cause="bad_signature"}': "0+1x300",
    'statesvc_messages_claimed_total{carrier="ups"}': "0+100x300",
    'statesvc_messages_buried_total{carrier="ups",cause="unreadable"}': "0+1x300",
    'statesvc_events_total{carrier="ups",verdict="appended"}': "0+100x300",
    'statesvc_events_unmapped_total{carrier="ups"}': "0+1x300",
    'statesvc_dead_letters_open{kind="message",cause="unreadable"}': "10x300",
    'statesvc_subscriptions_failing{state="failing"}': "0x300",
    'statesvc_outbox_oldest_ready_seconds{subscription="s"}': "20x300",
    "statesvc_sealer_oldest_unsealed_seconds": "1x300",
    "statesvc_sealer_refuses": "0x300",
    "statesvc_sealer_clock_offset_seconds": "0.1x300",
    'statesvc_listener_up{instance="a"}': "1x300",
    'statesvc_pool_waiting{instance="a",pool="worker"}': "0 3 0 3 0 3x295",
    "statesvc_partitions_horizon_seconds": "600000x300",
    "statesvc_database_oldest_transaction_seconds": "20x300",
    "statesvc_database_notify_queue": "0x300",
    'statesvc_disk_free_bytes{volume="data"}': "9e11x300",
}
"""An hour and more of a service that is well; a `_` in a value would be a missing sample."""
WELL['statesvc_pool_waiting{instance="a",pool="worker"}'] = " ".join(["0", "3"] * 150)

TROUBLE: Final[dict[str, Series]] = {
    "AckLatencyBurnsFast": _acks(20),
    "AckLatencyBurnsMedium": _acks(8),
    "AckLatencyBurnsSlow": _acks(2),
    "AckAvailabilityBurnsFast": {f'{ACK}_count{{carrier="ups",outcome="error"}}': "0+2x300"},
    "AckAvailabilityBurnsMedium": {f'{ACK}_count{{carrier="ups",outcome="error"}}': "0+0.5x300"},
    "AckAvailabilityBurnsSlow": {f'{ACK}_count{{carrier="ups",outcome="error"}}': "0+0.1x300"},
    "LagBurnsFast": _share(APPLIED, "120.0", 5),
    "LagBurnsMedium": _share(APPLIED, "120.0", 1),
    "LagBurnsSlow": _share(APPLIED, "120.0", 1),
    "FirstAttemptBurnsFast": _share(FIRST, "10.0", 20, 'state="ready"'),
    "FirstAttemptBurnsMedium": _share(FIRST, "10.0", 8, 'state="ready"'),
    "FirstAttemptBurnsSlow": _share(FIRST, "10.0", 3, 'state="ready"'),
    "PromiseBroken": {'statesvc_promises_missing{promise="settled"}': "3x300"},
    "ReconcilerBehind": {'statesvc_promises_behind_seconds{promise="settled"}': "3000x300"},
    "RoleDies": {'statesvc_processes_died{type="worker"}': "0x20 3x280"},
    "RoleDown": {'statesvc_processes{type="sealer"}': "1x40 _x260"},
    "RoleSilent": {'statesvc_role_answers{role="up",type="ingress"}': "1x40 0x260"},
    "PushesRefused": {'statesvc_refusals_total{cause="storage_low"}': "0+60x300"},
    "StorageLow": {"statesvc_ingest_storage_low": "1x300"},
    "TargetDown": {'up{job="statesvc",instance="a"}': "1x40 0x260"},
    "InboxBacklog": {'statesvc_inbox_oldest_ready_seconds{carrier="ups"}': "90x300"},
    "CarrierSilent": {},
    "CarrierHeld": {'statesvc_inbox_oldest_held_seconds{carrier="ups"}': "20000x300"},
    "SignaturesRefused": {f'{ACK}_count{{carrier="ups",outcome="rejected"}}': "0+300x300"},
    "Overloaded": {'statesvc_refusals_total{cause="connections"}': "0+60x300"},
    # nearly all are accepted, and nothing of them is read
    "FormatChanged": {
        'statesvc_messages_buried_total{carrier="ups",cause="unreadable"}': "0+1x300",
        'statesvc_messages_settled_total{carrier="ups",outcome="rejected"}': "0+20x300",
    },
    "UnmappedCodes": {'statesvc_events_unmapped_total{carrier="ups"}': "0+20x300"},
    "DeadLettersGrow": {
        'statesvc_dead_letters_open{kind="message",cause="unreadable"}': "_x60 100x240"
    },
    "SubscriberFailing": {'statesvc_subscriptions_failing{state="failing"}': "1x300"},
    "SubscriberBacklog": {'statesvc_outbox_oldest_ready_seconds{subscription="s"}': "1000x300"},
    "SealerStopped": {"statesvc_sealer_oldest_unsealed_seconds": "90x300"},
    "SealerRefuses": {"statesvc_sealer_refuses": "1x300"},
    "ClocksDiffer": {"statesvc_sealer_clock_offset_seconds": "-3x300"},
    "ListenerDown": {'statesvc_listener_up{instance="a"}': "0x300"},
    "PoolExhausted": {'statesvc_pool_waiting{instance="a",pool="worker"}': "2x300"},
    "EventLoopLate": {
        'statesvc_loop_lag_seconds_bucket{instance="a",le="0.25"}': "0+50x300",
        'statesvc_loop_lag_seconds_bucket{instance="a",le="1.0"}': "0+240x300",
        'statesvc_loop_lag_seconds_bucket{instance="a",le="+Inf"}': "0+240x300",
    },
    "PartitionHorizon": {"statesvc_partitions_horizon_seconds": "90000x300"},
    "NotifyQueue": {"statesvc_database_notify_queue": "0.6x300"},
    "OldTransaction": {"statesvc_database_oldest_transaction_seconds": "2000x300"},
    "SpoolWaits": {"statesvc_spool_oldest_seconds": "0+60x300"},
    "DiskFilling": {'statesvc_disk_free_bytes{volume="data"}': "9e11-1e10x300"},
}
"""Series that differ when an alert is to fire."""
# a day with pushes, then four hours without
SILENT: Final[Series] = {
    f'{ACK}_count{{carrier="ups",outcome="accepted"}}': "0+2x1440 2880x300",
    'statesvc_ingest_last_push_seconds{carrier="ups"}': "86400x1740",
}


THRESHOLDS: Final[dict[str, float]] = {
    "RoleDies": DEATHS_MIN,
    "InboxBacklog": status.READY_SECONDS_MAX,
    "CarrierHeld": status.HELD_SECONDS_MAX,
    "SpoolWaits": SPOOL_SECONDS_MAX,
    "SubscriberBacklog": NOTIFICATION_SECONDS_MAX,
    "SealerStopped": UNSEALED_SECONDS_MAX,
    "PartitionHorizon": status.HORIZON_SECONDS_MIN,
    "NotifyQueue": status.NOTIFY_QUEUE_SHARE_MAX,
    "OldTransaction": status.TRANSACTION_SECONDS_MAX,
}


def _alerts() -> dict[str, dict[str, Any]]:
    return {
        rule["alert"]: rule
        for group in rules()["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


def test_the_rules_ask_for_metrics_that_exist() -> None:
    assert unknown_metrics(RULES.read_text("utf-8")) == set()


def test_the_alerts_have_the_thresholds_of_status_and_of_the_promises() -> None:
    alerts = {name: rule["expr"] for name, rule in _alerts().items()}
    assert [
        name for name, bound in THRESHOLDS.items() if float(alerts[name].split()[-1]) != bound
    ] == []
    assert f'{{cause=~"{"|".join(status.CAUSES)}"}}' in alerts["PushesRefused"]
    for objective in (
        objectives.ACK_LATENCY,
        objectives.ACK_AVAILABILITY,
        objectives.LAG,
        objectives.FIRST_ATTEMPT,
    ):
        burning = [each for each in alerts.values() if f"statesvc:{objective.name}:" in each]
        assert len(burning) == 3
        assert all(each.count(f" * {1 - objective.share:.4g} ") == 2 for each in burning)


@needs_promtool
@pytest.mark.usefixtures("own_processes")
def test_each_alert_fires_on_what_it_is_for_and_a_service_that_is_well_calls_nobody(
    tmp_path: Path,
) -> None:
    tests = [_scenario("well", WELL, expects="count(ALERTS{alertstate='firing'})", value=None)]
    for alert, series in TROUBLE.items():
        fires = f"count(ALERTS{{alertstate='firing',alertname='{alert}'}}) > bool 0"
        tests.append(
            _scenario(
                alert,
                SILENT if alert == "CarrierSilent" else {**WELL, **series},
                expects=fires,
                value=1,
            )
        )
    few = {
        f'{ACK}_count{{carrier="ups",outcome="accepted"}}': "0+1x300",
        f'{ACK}_bucket{{carrier="ups",outcome="accepted",le="0.1"}}': "0+0x300",
    }
    fast = "count(ALERTS{alertstate='firing',alertname=~'.*Fast'})"
    tests.append(
        _scenario(
            "a night with few webhooks", {**WELL, **_none(ACK), **few}, expects=fast, value=None
        )
    )
    file = {"rule_files": [str(RULES)], "evaluation_interval": "15m", "tests": tests}
    tmp_path.joinpath("tests.yml").write_text(yaml.safe_dump(file, sort_keys=False))
    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _scenario(name: str, series: Series, *, expects: str, value: float | None) -> dict[str, Any]:
    at = "28h30m" if series is SILENT else "1h" if "night" in name else "1h15m"
    samples = [] if value is None else [{"labels": "{}", "value": value}]
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [{"expr": expects, "eval_time": at, "exp_samples": samples}],
    }


def _none(metric: str) -> Series:
    return {key: "0x300" for key in WELL if key.startswith(metric)}


def test_every_alert_is_tried_and_has_a_page() -> None:
    assert set(_alerts()) == set(TROUBLE)
    for rule in _alerts().values():
        address, _, page = rule["annotations"]["runbook_url"].rpartition("/")
        assert address == "http://localhost:8080/console/runbook"
        assert (RUNBOOK / f"{page}.md").is_file()


def test_each_incident_has_a_row_which_a_newer_one_replaces() -> None:
    page = PAGE.read_text("utf-8")
    rows = page.partition(BEGIN)[2].partition(END)[0].splitlines()[2:]
    shown = {row.split(" | ")[0].removeprefix("| "): row for row in rows}
    assert list(shown) == [each.what for each in TEN], "python -m tests.soak.incidents --write"
    assert {each.alert for each in TEN} <= set(waits())
    for incident in TEN:
        assert written(page, incident, shown[incident.what]) == page
