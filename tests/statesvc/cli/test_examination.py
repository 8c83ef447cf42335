"""What doctor says about the server's version."""

from statesvc.cli.examination import examine_version
from statesvc.cli.finding import Severity


def test_a_server_that_is_too_old_must_be_replaced() -> None:
    assert examine_version(150010).severity is Severity.BAD


def test_a_server_that_cannot_limit_a_whole_transaction_will_do_and_what_that_means_is_said() -> None:
    finding = examine_version(160004)
    assert finding.severity is Severity.WARNING
    assert "transaction_timeout" in finding.text


def test_a_newer_one_is_well() -> None:
    assert examine_version(170000).severity is examine_version(180004).severity is Severity.GOOD
