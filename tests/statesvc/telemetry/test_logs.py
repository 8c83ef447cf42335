"""Log lines: structured, short, counted by minute in a storm, and without personal data."""

import ast
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import orjson
import psycopg
import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider

from statesvc.telemetry.logs import configure_logging
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import Refusals
from statesvc.telemetry.redaction import KEYS
from tests.world.waiting import until

SECRETS = (
    "Jane Doe",
    "jane.doe@example.com",
    "1Z999AA10123456784",
    "+1 (555) 010-9999",
    "14 Elm Street",
)
BODY = (
    '{"signedBy": "Jane Doe", "mail": "jane.doe@example.com", "no": "1Z999AA10123456784", '
    '"tel": "+1 (555) 010-9999", "at": "14 Elm Street"}'
)


@pytest.fixture
def stream() -> io.StringIO:
    target = io.StringIO()
    configure_logging(process="worker", stream=target)
    return target


def fail(body: str) -> None:
    signer = body
    raise ValueError(f"cannot read {signer}")


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def assert_silent(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text


def test_a_line_within_an_exported_span_names_its_trace(stream: io.StringIO) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    with provider.get_tracer("test").start_as_current_span("a stage") as span:
        structlog.get_logger().warning("within")
    structlog.get_logger().warning("without")
    within, without = lines(stream)
    assert within["trace_id"] == f"{span.get_span_context().trace_id:032x}"
    assert "trace_id" not in without


def test_a_traceback_never_shows_what_the_failing_code_had_in_hand(stream: io.StringIO) -> None:
    try:
        fail(BODY)
    except ValueError:
        structlog.get_logger().exception("normalize_failed", carrier="ups")
    (line,) = lines(stream)
    assert_silent(stream.getvalue())
    assert str(line["error"]).startswith("ValueError at ")
    assert "test_logs.py" in str(line["error"])
    assert "in fail" in str(line["error"])
    assert line["carrier"] == "ups"


def test_causes_and_groups_are_told_without_their_text(stream: io.StringIO) -> None:
    try:
        try:
            fail(BODY)
        except ValueError as error:
            raise ExceptionGroup(BODY, [error, KeyError(BODY)]) from error
    except ExceptionGroup:
        structlog.get_logger().exception("failed")
    assert_silent(stream.getvalue())
    assert "KeyError" in stream.getvalue()
    assert "from ValueError" in stream.getvalue()


def test_an_error_whose_name_misleads_says_what_to_do(stream: io.StringIO) -> None:
    structlog.get_logger().warning(
        "claim_failed", exc_info=psycopg.errors.InvalidSqlStatementName()
    )
    structlog.get_logger().warning(
        "ingress_not_stored", error=psycopg.errors.DuplicatePreparedStatement()
    )
    structlog.get_logger().warning("claim_failed", exc_info=psycopg.errors.UndefinedTable())
    first, second, third = lines(stream)
    assert "STATESVC_PREPARED_STATEMENTS=false" in str(first["why"])
    assert first["why"] == second["why"]
    assert "why" not in third


def test_library_records_pass_the_same_redaction(stream: io.StringIO) -> None:
    library = logging.getLogger("psycopg.pool")
    library.warning("error connecting in %r: %s after %d tries", BODY, ValueError(BODY), 3)
    try:
        fail(BODY)
    except ValueError:
        logging.getLogger("aiohttp.server").exception("Error handling request from %s", "10.0.0.1")
    logging.getLogger("asyncio").error(
        f"Task exception was never retrieved\nfuture: <Task exception=ValueError('{BODY}')>"  # noqa: G004
    )
    first, second, third = lines(stream)
    assert_silent(stream.getvalue())
    assert first["event"] == "error connecting in …: ValueError after 3 tries"
    assert first["logger"] == "psycopg.pool"
    assert second["event"] == "Error handling request from …"
    assert third["event"] == "Task exception was never retrieved"


def test_a_message_that_a_library_put_together_is_withheld(stream: io.StringIO) -> None:
    name = "Quentin Maurer"
    library = logging.getLogger("library")
    library.warning(f"no such person: {name}")
    library.warning("no such person: " + name)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn(f"no such person: {name}", stacklevel=1)
    assert name.split(maxsplit=1)[0] not in stream.getvalue()
    first, second, third = lines(stream)
    assert str(first["event"]).startswith("message withheld, of test_logs.py:")
    assert str(second["event"]).startswith("message withheld, of test_logs.py:")
    assert str(third["event"]).startswith("UserWarning at test_logs.py:")


def test_a_key_that_is_not_listed_is_dropped_and_counted(stream: io.StringIO) -> None:
    structlog.get_logger().info("stored", body=BODY, signed_by="Jane Doe", count=2)
    (line,) = lines(stream)
    assert_silent(stream.getvalue())
    assert line["dropped_keys"] == 2
    assert line["count"] == 2


@pytest.mark.parametrize(
    "key",
    [
        "event",
        "reason",
        "carrier",
        "code",
        "worker_id",
        "message_id",
        "route",
        "error",
        "setting",
        "token",
    ],
)
@pytest.mark.parametrize(
    "secret",
    [
        "jane.doe@example.com",
        "1Z999AA10123456784",
        "+1 (555) 010-9999",
        "9400111899223344556677",
        "RB123456785GB",
    ],
)
def test_a_listed_key_does_not_carry_what_looks_like_a_person_or_a_tracking_number(
    stream: io.StringIO, key: str, secret: str
) -> None:
    fields = (
        {"event": "stored"} | {key: f"for {secret}"}
        if key == "reason"
        else {"event": "stored"} | {key: secret}
    )
    event = fields.pop("event")
    structlog.get_logger().info(event, **fields)
    assert secret not in stream.getvalue()


def test_ids_and_times_stay_readable(stream: io.StringIO) -> None:
    message_id = "0199a3c2-7b1e-7cc3-98c4-dc0c0c07398f"
    structlog.get_logger().info(
        "buried",
        message_id=message_id,
        worker_id="host-1-worker-4711",
        key_id="ab12cd34ef56",
        cause="unreadable",
        count=15000,
    )
    (line,) = lines(stream)
    assert (line["message_id"], line["worker_id"], line["key_id"]) == (
        message_id,
        "host-1-worker-4711",
        "ab12cd34ef56",
    )
    assert (line["cause"], line["count"], line["process"], line["level"]) == (
        "unreadable",
        15000,
        "worker",
        "info",
    )
    assert str(line["timestamp"]).startswith("20")


def test_the_console_form_is_redacted_too(stream: io.StringIO) -> None:
    configure_logging(process="api", output_format="console", stream=stream)
    try:
        fail(BODY)
    except ValueError:
        structlog.get_logger().exception("failed", note="Jane Doe", reason="call +1 (555) 010-9999")
    assert_silent(stream.getvalue())
    assert "ValueError at" in stream.getvalue()


def test_an_exception_that_nobody_caught_is_told_without_its_text(stream: io.StringIO) -> None:
    try:
        fail(BODY)
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    assert_silent(stream.getvalue())
    assert lines(stream)[0]["event"] == "uncaught_exception"


def test_a_stream_that_broke_stops_nobody(stream: io.StringIO) -> None:
    stream.close()
    structlog.get_logger().error("failed")
    logging.getLogger("aiohttp.server").error("failed")


ROOT = Path(__file__).parents[3]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def logged_keys() -> Iterator[tuple[str, str]]:
    for package in ("statesvc", "events", "projections"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Attribute(
                            value=ast.Name(id="log" | "_log" | "logger"), attr=attribute
                        ),
                        keywords=keywords,
                    ) if attribute in LEVELS:
                        for keyword in keywords:
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", keyword.arg or "**"
                    case _:
                        pass


def test_every_key_that_the_code_logs_is_on_the_list() -> None:
    unknown = [
        (place, key) for place, key in logged_keys() if key not in KEYS and key != "exc_info"
    ]
    assert unknown == []


async def test_the_first_of_a_kind_is_logged_at_once_and_the_others_together() -> None:
    telemetry = Telemetry()
    refusals = Refusals(telemetry, every_seconds=0.1)
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as logged:
        with structlog.contextvars.bound_contextvars(token="of one request"):
            for _ in range(500):
                refusals.count("head_timeout")
        refusals.count("connections")
        assert [(line["cause"], line["count"]) for line in logged] == [
            ("head_timeout", 1),
            ("connections", 1),
        ]
        await until(lambda: len(logged) >= 3)
        assert (logged[2]["cause"], logged[2]["count"]) == ("head_timeout", 499)
        assert ["token" in line for line in logged] == [True, False, False], (
            "a sum is about no single one"
        )
    exposed = telemetry.exposition().decode()
    assert 'statesvc_refusals_total{cause="head_timeout"} 500.0' in exposed
    assert 'statesvc_refusals_total{cause="connections"} 1.0' in exposed
    telemetry.close()
