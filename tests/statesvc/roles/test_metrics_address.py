import socket
from collections.abc import Iterator

import pytest

from statesvc.roles.metrics_address import MetricsPortTakenError, metrics_listener
from statesvc.settings.http_settings import HttpSettings


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
