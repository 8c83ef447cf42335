import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.names import Stage
from statesvc.telemetry.tracing import TracingUnavailableError, build_provider


def test_a_span_names_the_exception_and_nothing_of_its_text() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(tracer=provider.get_tracer("statesvc"))
    with pytest.raises(ValueError, match="Jane"), telemetry.stage(Stage.NORMALIZE, carrier="ups"):
        raise ValueError("signed by Jane Doe")
    (span,) = exporter.get_finished_spans()
    assert span.name == "statesvc.normalize"
    assert dict(span.attributes or {}) == {"carrier": "ups", "error.type": "ValueError"}
    assert span.status.status_code is StatusCode.ERROR
    assert "Jane" not in span.to_json()


def test_nothing_is_built_where_nothing_is_exported() -> None:
    assert build_provider(role="worker", endpoint=None) is None


def test_the_share_of_traces_is_kept() -> None:
    never = build_provider(role="worker", endpoint="console", sample_ratio=0.0)
    assert never is not None
    with never.get_tracer("statesvc").start_as_current_span("statesvc.claim") as span:
        assert not span.is_recording()
    never.shutdown()


def test_a_missing_exporter_says_what_to_install() -> None:
    with pytest.raises(TracingUnavailableError, match="opentelemetry-exporter-otlp-proto-http"):
        build_provider(role="worker", endpoint="http://127.0.0.1:4318/v1/traces")
