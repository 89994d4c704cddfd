"""Spans that OpenTelemetry's exporter thread sends to a collector, beside threads that compute.

A batch is exported every 50 ms; what is measured is how long an export takes. Nothing here waits long: an
export is a request to a collector on this machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import beside
import measure
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

seen = measure.Latencies()


class Timed(OTLPSpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        begin = time.monotonic()
        seen.ask(begin)
        result = super().export(spans)
        if result is SpanExportResult.SUCCESS:
            seen.answer(begin)
        else:
            seen.fail(begin)
        return result


exporter = Timed(endpoint=f"http://127.0.0.1:{os.environ['EXAMPLE_PORT_2']}/v1/traces", timeout=1)
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50))
tracer = provider.get_tracer("example")
beside.compute()
for due in measure.arrivals():
    measure.sleep_until(due)
    with tracer.start_as_current_span("order"):
        pass
measure.say(requests=seen)
os._exit(0)  # what has not been exported is no longer of interest
