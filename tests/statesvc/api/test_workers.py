from typing import Any

WORKER = (
    "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at, last_seen_at,"
    " stopping_at) SELECT %s, 'worker', 'h', 7, '0', at - interval '1 hour', at -"
    " make_interval(secs => %s), %s FROM (SELECT statesvc.clock() AS at) c"
)
LEASED = (
    "INSERT INTO statesvc.inbox (message_id, received_at, available_at, token, worker, leased_at,"
    " body_bytes, carrier_id, sealed_key) SELECT gen_random_uuid(), at, at, gen_random_uuid(), %s,"
    " at - interval '3 s', 1, 'ups', '' FROM (SELECT statesvc.clock() AS at) c,"
    " generate_series(1, %s)"
)


async def test_workers_show_their_state_their_leases_and_what_was_taken_from_them(api: Any) -> None:
    for worker_id, seen_seconds_ago, stopping_at in (
        ("alive", 2, None),
        ("silent", 50, None),
        ("stopping", 1, "2026-01-01T00:00:00Z"),
    ):
        await api.carriers.execute(WORKER, [worker_id, seen_seconds_ago, stopping_at])
    for holder, count in (("alive", 3), ("node", 2), (None, 4)):
        await api.carriers.execute(LEASED, [holder, count])
    await api.carriers.execute(
        "INSERT INTO statesvc.message_attempt (message_id, ended_at, attempt, carrier_id, outcome,"
        " worker) SELECT gen_random_uuid(), statesvc.clock() - h * interval '1 h', 1, 'ups', o,"
        " 'silent' FROM (VALUES (0, 'lease_ended'), (5, 'lease_ended'), (30, 'lease_ended'), (0,"
        " 'retried')) v(h, o)"
    )
    shown = (await api.get("/v1/workers", scopes="ops")).body
    rows = [
        (w["worker_id"], w["state"], w["leases"], w["leases_lost"], w["role"])
        for w in shown["items"]
    ]
    assert rows == [
        ("silent", "silent", 0, 2, "worker"),
        ("stopping", "stopping", 0, 0, "worker"),
        ("node", "foreign", 2, 0, None),
        ("alive", "alive", 3, 0, "worker"),
    ]
    assert 50 <= shown["items"][0]["seen_seconds_ago"] < 60
    assert shown["rescues_last_hour"] == 1
