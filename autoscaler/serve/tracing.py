"""Optional OpenTelemetry traces: a trace for each reconcile, a span for each of its stages.

The SDK is an extra and is imported only if an endpoint is set; without one, nothing is measured twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from autoscaler.errors import ConfigurationError
from autoscaler.settings.settings import OFF, TracingSettings
from instance_catalog.dataclass import dataclass

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter


def _nothing() -> None:
    """There is nothing to end."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Spans by name; one opened inside another is its child. `close` sends the remaining ones."""

    span: Callable[[str], AbstractContextManager[object]] = nullcontext
    close: Callable[[], None] = _nothing


def tracing_of(settings: TracingSettings, *, cluster: str, version: str) -> Tracing:
    """The tracing of the settings. Raises ConfigurationError if the extra is not installed."""
    if settings.endpoint == OFF:
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError(
            f"tracing.endpoint is set, but OpenTelemetry is not installed: {error}",
            next_step="pip install 'foreslice[tracing]', or leave tracing.endpoint out",
        ) from error
    return traced(OTLPSpanExporter(endpoint=settings.endpoint), cluster=cluster, version=version)


def traced(exporter: SpanExporter, *, cluster: str, version: str) -> Tracing:
    """Spans to an exporter, sent in batches by a thread of the SDK's. The provider is this object's own, not global."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    facts = {"service.name": "foreslice", "service.version": version, "k8s.cluster.name": cluster}
    provider = TracerProvider(resource=Resource({name: value for name, value in facts.items() if value}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(_spans(provider), provider.shutdown)


def _spans(provider: TracerProvider) -> Callable[[str], AbstractContextManager[object]]:
    tracer = provider.get_tracer("foreslice")

    @contextmanager
    def span(name: str) -> Iterator[None]:
        # An error inside is recorded on the span on its way out.
        with tracer.start_as_current_span(name):
            yield

    return span
