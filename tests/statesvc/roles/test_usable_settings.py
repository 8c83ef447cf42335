"""Settings that a role could not work with are refused in one line; connections become pools."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from statesvc.cli import main
from statesvc.database.connection_bound import ConnectionBound, read_connection_bound
from statesvc.http.app import Server, build_app
from statesvc.roles.connection_limits import (
    BESIDES,
    DIRECT,
    LEAST,
    ONE_OF_EACH,
    ConnectionPlan,
    TooFewConnectionsError,
    plan_for,
)
from statesvc.roles.metrics_address import MetricsPortTakenError, metrics_listener
from statesvc.roles.supervisor.child_plan import ROLES, any_free, is_free, is_loopback
from statesvc.settings.http_settings import HttpSettings, listen_hosts
from statesvc.settings.service_settings import CONNECTIONS_MIN, load_settings
from tests.world import postgres

BROKEN = [
    ({"STATESVC_BOOTSTRAP_KEY": "b" * 23}, "STATESVC_BOOTSTRAP_KEY has 23 characters"),
    ({"DATABASE_URL": "postgresql://[hush"}, "DATABASE_URL is no address of a database"),
    ({"DATABASE_URL": "host=db hush"}, "DATABASE_URL is no address of a database"),
    (
        {"DATABASE_URL": "host=db", "STATESVC_LISTEN_URL": "hush"},
        "STATESVC_LISTEN_URL is no address of a database",
    ),
    ({"DATABASE_URL": "host=db"}, "STATESVC_MASTER_KEY is not set"),
    ({"STATESVC_MASTER_KEY": "hush"}, "STATESVC_MASTER_KEY"),
    ({"STATESVC_KMS_URL": "https://hush"}, "STATESVC_KMS_URL must be"),
    ({"STATESVC_WEBHOOK_SECRET_UPPS": "hush"}, "STATESVC_WEBHOOK_SECRET_UPPS is for no carrier"),
    ({"STATESVC_HOST": "203.0.113.7"}, "this machine cannot listen on '203.0.113.7'"),
    (
        {"STATESVC_HOST": "127.0.0.1,nowhere.invalid"},
        "this machine cannot listen on 'nowhere.invalid'",
    ),
    (
        {"STATESVC_CHECKPOINT_PUBLISH": "ftp://hush"},
        "STATESVC_CHECKPOINT_PUBLISH: neither a folder",
    ),
    (
        {
            "STATESVC_CHECKPOINT_STAMP_URL": "https://tsa",
            "STATESVC_CHECKPOINT_STAMP_CERT": "missing.pem",
        },
        "missing.pem cannot be read",
    ),
]


@pytest.mark.parametrize("command", ["up", *ROLES])
@pytest.mark.parametrize("broken", BROKEN, ids=[words for _, words in BROKEN])
def test_a_setting_that_no_role_can_use_is_refused_first(
    command: str,
    broken: tuple[dict[str, str], str],
    empty: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings, words = broken
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert main([command, "--port", "0"]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert "hush" not in printed.err
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("setting", ["STATESVC_METRICS_PORT", "STATESVC_EMBEDDED_PORT"])
def test_a_setting_that_takes_the_port_of_the_service_is_refused(
    setting: str, empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(setting, "8080")
    assert main(["up", "--port", "8080"]) == 2
    assert f"{setting} is 8080, which is also the port" in capsys.readouterr().err
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n", "  \n"])
def test_settings_end_where_their_text_does(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATESVC_BOOTSTRAP_KEY", "b" * 24 + ending)
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/x" + ending)
    monkeypatch.setenv("STATESVC_MASTER_KEY", "key" + ending)
    monkeypatch.setenv("STATESVC_OWNER_URL", ending)
    monkeypatch.setenv("STATESVC_DATA_DIR", "/data" + ending)
    keys, database = load_settings().keys, load_settings().database
    assert (keys.bootstrap_key, keys.master_key) == (SecretStr("b" * 24), SecretStr("key"))
    assert (database.database_url, database.owner_url, database.data_dir) == (
        SecretStr("postgresql://db/x"),
        None,
        Path("/data"),
    )


@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("127.0.0.1", ("127.0.0.1",)),
        ("::", ("::", "0.0.0.0")),  # noqa: S104 - the case under test
        ("::,127.0.0.1", ("::", "127.0.0.1")),
        ("::1, 127.0.0.1", ("::1", "127.0.0.1")),
    ],
)
def test_the_unspecified_address_means_ipv4_too_unless_that_is_named(
    host: str, hosts: tuple[str, ...]
) -> None:
    assert listen_hosts(host) == hosts


def test_several_addresses_are_loopback_if_all_are() -> None:
    assert is_loopback("127.0.0.1,::1")
    assert not is_loopback("::")
    assert not is_loopback("127.0.0.1,192.0.2.1")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("host", ["::", "127.0.0.1,::1"])
@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
async def test_one_port_answers_on_ipv4_and_ipv6(host: str) -> None:
    server = Server(build_app([], keys=None), host=host, port=0, grace_seconds=1)
    port = await server.start()
    try:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as client:
                client.settimeout(5)
                client.connect((address, port))
        assert not is_free("127.0.0.1", port)
        assert not is_free("::", port)
    finally:
        await server.stop()
    assert any_free(host)


def bound(connections: int, others: int = 0) -> ConnectionBound:
    return ConnectionBound(connections=connections, others=others, why="the server takes so many")


@pytest.mark.parametrize("connections", [*range(CONNECTIONS_MIN, 30), 100])
def test_a_plan_takes_exactly_what_there_is_and_gives_nobody_less_for_more(
    connections: int,
) -> None:
    plan, before = ConnectionPlan.of(connections), ConnectionPlan.of(connections - 1)
    assert plan.wanted(ONE_OF_EACH) == connections
    assert all(plan.pools[name] >= before.pools[name] for name in plan.pools)


def test_by_default_each_role_has_its_share() -> None:
    plan = ConnectionPlan.of(load_settings().database.database_connections)
    assert plan.pools == {
        "ingress": 4,
        "api": 3,
        "worker": 3,
        "notifier": 2,
        "sealer": 1,
        BESIDES: 5,
    }
    assert {role: plan.pools[role] + DIRECT[role] for role in DIRECT} == {
        "ingress": 5,
        "api": 4,
        "worker": 4,
        "notifier": 3,
        "sealer": 3,
    }


def test_the_least_plan_is_what_settings_take_as_their_least() -> None:
    assert ConnectionPlan.of(0).wanted(ONE_OF_EACH) == CONNECTIONS_MIN
    assert ConnectionPlan.of(0).pools == {**LEAST, BESIDES: 1}


def test_what_the_server_leaves_bounds_the_plan() -> None:
    settings = load_settings()
    assert plan_for(settings, None).wanted(ONE_OF_EACH) == 24
    assert plan_for(settings, bound(97)).wanted(ONE_OF_EACH) == 24
    assert plan_for(settings, bound(97, others=80)).wanted(ONE_OF_EACH) == 17
    # others may leave
    assert plan_for(settings, bound(97, others=96)).wanted(ONE_OF_EACH) == CONNECTIONS_MIN
    with pytest.raises(
        TooFewConnectionsError,
        match=(
            r"\+ 1 for commands, evidence and archiving = 14, but the server takes so many: 13 left"
        ),
    ):
        plan_for(settings, bound(13))


@pytest.mark.usefixtures("owner")
async def test_the_narrowest_limit_is_read_with_what_others_use(
    server: postgres.Server, service: psycopg.AsyncConnection[Any]
) -> None:
    name = service.info.dbname
    found = await read_connection_bound(service)
    # 200 of the server, 3 of them reserved for superusers
    assert ("max_connections" in found.why, found.connections) == (True, 197)
    async with await psycopg.AsyncConnection.connect(
        server.superuser_dsn, autocommit=True
    ) as admin:
        await admin.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 20'.encode())
    found = await read_connection_bound(service)
    assert (found.connections, found.others, found.left) == (20, 1, 19)
    assert f"ALTER DATABASE {name} CONNECTION LIMIT" in found.why


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def port_of(http: HttpSettings, *, port: int) -> int:
    with metrics_listener(http, port=port) as listener:
        host, bound = listener.getsockname()[:2]
        assert host == http.metrics_host == "127.0.0.1"
        return int(bound)


def test_metrics_are_on_the_loopback_a_thousand_above_the_role() -> None:
    assert HttpSettings().default_metrics_port(8081) == 9081
    assert (
        HttpSettings().default_metrics_port(0) == HttpSettings().default_metrics_port(65_000) == 0
    )


def test_a_chosen_port_that_is_taken_is_refused_in_a_sentence(taken: int) -> None:
    with pytest.raises(MetricsPortTakenError, match=f"{taken} .*STATESVC_METRICS_PORT"):
        metrics_listener(HttpSettings(metrics_port=taken), port=8080)


def test_where_nobody_chose_a_port_any_free_one_will_do(taken: int) -> None:
    assert port_of(HttpSettings(), port=taken - 1000) not in {0, taken}
    assert port_of(HttpSettings(metrics_port=0), port=8080)


def test_a_host_that_is_none_is_refused_in_a_sentence() -> None:
    with pytest.raises(MetricsPortTakenError, match="STATESVC_METRICS_HOST"):
        metrics_listener(HttpSettings(metrics_host="no such host"), port=8080)
