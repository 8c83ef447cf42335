import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from statesvc.telemetry import tracing
from statesvc.telemetry.metric import Stage
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.tracing import (
    ExporterUnavailableError,
    begin,
    build_provider,
    metric_exporter,
    span,
    traceparent_of,
)

RESOURCE = Resource({})


def _provider() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


@pytest.fixture(autouse=True)
def nothing_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_TRACES_EXPORTER",
        "OTEL_METRICS_EXPORTER",
        "OTEL_TRACES_SAMPLER",
    ):
        monkeypatch.delenv(name, raising=False)


def test_a_span_names_the_exception_and_nothing_of_its_text() -> None:
    provider, exporter = _provider()
    telemetry = Telemetry(tracer=provider.get_tracer("statesvc"))
    with pytest.raises(ValueError, match="Jane"), telemetry.stage(Stage.NORMALIZE, carrier="ups"):
        raise ValueError("signed by Jane Doe")
    (found,) = exporter.get_finished_spans()
    assert found.name == "statesvc.normalize"
    assert dict(found.attributes or {}) == {"carrier": "ups", "error.type": "ValueError"}
    assert found.status.status_code is StatusCode.ERROR
    assert "Jane" not in found.to_json()


def test_a_trace_goes_on_in_another_process() -> None:
    provider, exporter = _provider()
    tracer = provider.get_tracer("statesvc")
    with span(tracer, Stage.INGEST, {"carrier": "ups"}):
        pushed = traceparent_of()
    assert pushed is not None
    worked = begin(tracer, Stage.PROCESS, {}, parent=pushed)
    queued = traceparent_of(worked)
    worked.end()
    with span(tracer, Stage.DELIVER, {}, parent=queued):
        pass
    ingest, process, deliver = exporter.get_finished_spans()
    assert ingest.context is not None
    assert process.parent is not None
    assert deliver.parent is not None
    assert {process.parent.trace_id, deliver.parent.trace_id} == {ingest.context.trace_id}
    assert (process.parent.span_id, deliver.parent.span_id) == (
        ingest.context.span_id,
        worked.get_span_context().span_id,
    )


def test_nothing_is_kept_of_what_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    never = build_provider(RESOURCE)
    assert never is not None
    with never.get_tracer("statesvc").start_as_current_span("statesvc.claim") as found:
        assert not found.is_recording()
        assert traceparent_of() is None
    never.shutdown()


def test_nothing_is_built_where_nothing_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_provider(RESOURCE) is None
    assert metric_exporter() is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert build_provider(RESOURCE) is None


def test_a_missing_exporter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setattr(tracing, "_OTLP", "no.such.package")
    with pytest.raises(ExporterUnavailableError, match=r"statesvc\[otlp\]"):
        build_provider(RESOURCE)
