"""Traces only when asked for, and then one span for each stage inside its round."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from autoscaler.errors import ConfigurationError
from autoscaler.serve.tracing import traced, tracing_of
from autoscaler.settings.settings import TracingSettings


def test_nothing_is_imported_unless_it_is_wanted() -> None:
    code = (
        "import sys; from autoscaler.composition import build; "
        "from autoscaler.serve.tracing import tracing_of; "
        "from autoscaler.settings.settings import TracingSettings; "
        "t = tracing_of(TracingSettings(), cluster='', version='1')\n"
        "with t.span('tick'): pass\n"
        "t.close(); sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_round_is_a_trace_of_its_stages() -> None:
    exporter = InMemorySpanExporter()
    tracing = traced(exporter, cluster="prod", version="1.2")
    with tracing.span("tick"), tracing.span("plan"):
        pass
    with pytest.raises(ValueError, match="broken"), tracing.span("tick"):
        raise ValueError("broken")
    tracing.close()
    plan, tick, failed = exporter.get_finished_spans()
    assert [span.name for span in (plan, tick, failed)] == ["plan", "tick", "tick"]
    assert plan.parent is not None
    assert tick.context is not None
    assert plan.parent.span_id == tick.context.span_id
    assert tick.parent is None
    assert tick.resource.attributes["service.name"] == "foreslice"
    assert tick.resource.attributes["k8s.cluster.name"] == "prod"
    assert failed.status.is_ok is False
    assert failed.events[0].name == "exception"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError) as caught:
        tracing_of(TracingSettings(endpoint="http://collector:4318/v1/traces"), cluster="", version="1")
    assert "foreslice[tracing]" in caught.value.next_step
