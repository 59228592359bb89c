"""Metrics of the requests to each API: how many, with which status, and how long until the response began."""

import time
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from engine.http.server import Application, Message, Receive, Send

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_OTHER: Final = "other"
"""Label of methods that are not in ``_METHODS``: clients can invent methods, and each label value costs memory."""

_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class RequestMetrics(Collector):
    """Requests to the APIs of this process since it started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "reballast_requests",
            "Requests whose response began.",
            ["api", "method", "code"],
            registry=self._registry,
        )
        self._duration = Histogram(
            "reballast_request_duration_seconds",
            "Time until the response began; streams such as watches continue after it.",
            ["api", "method"],
            buckets=_BUCKETS_S,
            registry=self._registry,
        )

    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()

    def measured(self, api: str, application: Application) -> Application:
        """Wrap an application so that its requests are counted; ``api`` is the value of the label ``api``."""

        async def counted(scope: Message, receive: Receive, send: Send) -> None:
            began_s = time.monotonic()
            method = scope.get("method", "")
            label = method if method in _METHODS else _OTHER

            async def send_counted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._requests.labels(api, label, message["status"]).inc()
                    self._duration.labels(api, label).observe(time.monotonic() - began_s)
                await send(message)

            await application(scope, receive, send_counted)

        return counted
