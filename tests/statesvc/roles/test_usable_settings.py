"""Settings that a role could not work with are said in one line, before anything is
made, migrated or forked.
"""

import os
import socket
from pathlib import Path

import pytest

from statesvc.cli import main
from statesvc.http.app import Server, build_app
from statesvc.roles.supervisor.child_plan import ROLES, any_free, is_free, is_loopback
from statesvc.settings.http_settings import listen_hosts
from statesvc.settings.section import Section
from statesvc.settings.service_settings import SECTIONS, load_settings

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


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name == "DATABASE_URL" or name.startswith("STATESVC_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    settings = load_settings()
    assert settings.keys.bootstrap_key is not None
    assert settings.keys.bootstrap_key.get_secret_value() == "b" * 24
    assert settings.keys.master_key is not None
    assert settings.keys.master_key.get_secret_value() == "key"
    assert settings.database.database_url is not None
    assert settings.database.database_url.get_secret_value() == "postgresql://db/x"
    assert settings.database.owner_url is None
    assert settings.database.data_dir == Path("/data")


def test_each_part_of_the_settings_is_stripped() -> None:
    assert all(issubclass(section, Section) for section in SECTIONS)


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
