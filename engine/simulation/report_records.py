"""Records of the members' reports: their ids, sources, causes and partitions."""

from engine.simulation.reports import SOURCE, Report
from events import catalogue, codec, keys, records, times, topics
from events.envelope import Envelope


class ReportRecords:
    """Encodes reports; ``start`` is the end of the log, so that ids differ from those of every earlier process."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._count = 0

    def encode(self, member: str, report: Report, now_ms: int) -> records.Record:
        """Return the record of the next report."""
        self._count += 1
        envelope = Envelope(
            id=f"{self._start}-{self._count}",
            source=SOURCE + member,
            type="",
            subject=report.key,
            time=times.to_text(now_ms),
            traceparent=report.cause.trace.parent,
            tracestate=report.cause.trace.state,
            correlationid=report.cause.story,
            causationid=report.cause.cause,
        )
        topic = catalogue.BY_STRUCT[type(report.data)].topic
        partition = 0 if topic == topics.CLUSTERS else keys.shard_of(report.key)
        return codec.encode(report.data, envelope, partition=partition, key=report.key)
