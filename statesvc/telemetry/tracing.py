"""One trace from a webhook to its subscribers, sampled where the webhook comes in.

Silent, at no cost, unless an exporter is configured.

```
ingest --(in the message's headers)--> process, linked from the batch's stages --(in the outbox)--> deliver --(to the subscriber)
```
OpenTelemetry's own variables decide the exports (`OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_TRACES_EXPORTER`, `OTEL_TRACES_SAMPLER`, ...); without a sampler one webhook in a hundred
is traced. A `traceparent` that a carrier sends is not believed: anyone could have all of theirs
traced. A span never holds an exception's text or traceback, since those may quote a carrier's
payload: only the type of it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import Link, NoOpTracer, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from statesvc.telemetry.metric import Stage

TRACEPARENT: Final = "traceparent"
# Share of webhooks that are traced, unless OTEL_TRACES_SAMPLER sets another.
SAMPLED_SHARE: Final = 0.01
_OTLP: Final = "opentelemetry.exporter.otlp.proto.http"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_KINDS: Final = {
    Stage.INGEST: SpanKind.SERVER,
    Stage.PROCESS: SpanKind.CONSUMER,
    Stage.DELIVER: SpanKind.CLIENT,
}


class ExporterUnavailableError(RuntimeError):
    """Telemetry shall go out by OTLP, but its exporter is not installed:
    `pip install 'statesvc[otlp]'`.
    """


def resource_of(role: str, instance: str) -> Resource:
    """Return the attributes of this process; OTEL_SERVICE_NAME and
    OTEL_RESOURCE_ATTRIBUTES add to it.
    """
    return detected_resource().merge(
        Resource(
            {"service.namespace": "statesvc", "service.name": role, "service.instance.id": instance}
        )
    )


@cache
def detected_resource() -> Resource:
    """Return the attributes of the environment, the same for all roles of a machine: finding out
    takes two threads and all packages' metadata.
    """
    return Resource.create({})


def build_provider(resource: Resource) -> TracerProvider | None:
    """Return the provider of a process, or None without an exporter.

    Raises ExporterUnavailableError.
    """
    exporter = _asked_for("TRACES")
    if exporter is None:
        return None
    spans: SpanExporter = (
        ConsoleSpanExporter()
        if exporter == "console"
        else _otlp("trace_exporter.OTLPSpanExporter", SpanExporter)
    )
    # None: the SDK reads the variable
    sampler: Sampler | None = (
        None
        if os.environ.get("OTEL_TRACES_SAMPLER")
        else ParentBased(TraceIdRatioBased(SAMPLED_SHARE))
    )
    # the process shuts it down itself, so that no dead collector delays its end
    provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(spans))
    return provider


def require_exporters() -> None:
    """Check the exporters.

    Raises ExporterUnavailableError where the variables ask for a package that is not installed.
    """
    if "otlp" in (_asked_for("TRACES"), _asked_for("METRICS")):
        try:
            import_module(_OTLP)
        except ImportError as error:
            raise ExporterUnavailableError(ExporterUnavailableError.__doc__) from error


def metric_exporter() -> MetricReader | None:
    """Return the OTLP reader if OTEL_METRICS_EXPORTER or an endpoint asks for it."""
    if _asked_for("METRICS") != "otlp":
        return None
    return PeriodicExportingMetricReader(_otlp("metric_exporter.OTLPMetricExporter", object))


@contextmanager
def span(
    tracer: Tracer,
    stage: Stage,
    attributes: Mapping[str, str | int],
    *,
    parent: str | None = None,
    links: Sequence[Link] = (),
) -> Iterator[None]:
    """Open a span of a stage; an exception leaves its type behind.

    `parent`: a traceparent, in place of the current span.
    """
    # before the attributes are copied: tracing that is off costs nothing
    if isinstance(tracer, NoOpTracer):
        yield
        return
    with tracer.start_as_current_span(
        f"statesvc.{stage.value}",
        context=None if parent is None else _context(parent),
        kind=_KINDS.get(stage, SpanKind.INTERNAL),
        attributes=dict(attributes),
        links=links,
        # OpenTelemetry would store the exception's text, which may quote a payload
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield
        except BaseException as error:
            fail(current, error)
            raise


def begin(
    tracer: Tracer, stage: Stage, attributes: Mapping[str, str | int], *, parent: str
) -> Span:
    """Begin a span that the caller ends; not the current span."""
    kind = _KINDS.get(stage, SpanKind.INTERNAL)
    return tracer.start_span(
        f"statesvc.{stage.value}", context=_context(parent), kind=kind, attributes=dict(attributes)
    )


def fail(failed: Span, error: BaseException) -> None:
    """Mark a span as failed, by the type of the error alone."""
    failed.set_attribute("error.type", type(error).__qualname__)
    failed.set_status(Status(StatusCode.ERROR))


def traceparent_of(one: Span | None = None) -> str | None:
    """Return the traceparent of a span (default: the current); None: not sampled, store nothing."""
    found = trace.get_current_span() if one is None else one
    if not found.get_span_context().trace_flags.sampled:
        return None
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(found))
    return carrier.get(TRACEPARENT)


def _context(traceparent: str) -> Context:
    return _PROPAGATOR.extract({TRACEPARENT: traceparent})


def _asked_for(signal: str) -> str | None:
    """Return which exporter the variables ask for: `otlp`, `console`, or none."""
    exporter = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    if exporter in {"otlp", "console"}:
        return exporter
    if exporter:
        return None
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get(
        f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    )
    return "otlp" if endpoint else None


def _otlp(name: str, kind: type[Any]) -> Any:  # noqa: ANN401 - of an optional package
    module, _, exporter = name.partition(".")
    try:
        found = getattr(import_module(f"{_OTLP}.{module}"), exporter)()
    except ImportError as error:
        raise ExporterUnavailableError(ExporterUnavailableError.__doc__) from error
    if not isinstance(found, kind):
        raise ExporterUnavailableError(f"{_OTLP} has no usable {exporter}")
    return found
