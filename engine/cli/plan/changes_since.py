"""The inputs after a plan was made that changed its basis, so that a refusal can name them."""

import itertools
from collections.abc import Collection, Iterable
from typing import Final

from engine.cli import server_reads
from engine.cli.client import Client
from engine.http import summaries
from engine.http.query.record_json import Entry
from engine.plans.predictions import Prediction
from events import clusters, codec, topics

_READ_MAX: Final = 10_000
_REPORTS: Final = frozenset(
    codec.catalogue.BY_STRUCT[struct].type
    for struct in (
        clusters.CapacityReported,
        clusters.ClusterHealthChanged,
        clusters.ClusterApisReported,
        clusters.ClusterConditionsReported,
    )
)
"""Types of the periodic reports of clusters; they count only as the cause of a decision."""


def changes_since(
    client: Client, planned: Prediction, now: Prediction, workloads: Collection[str]
) -> list[str]:
    """Return the changes since a plan that these workloads depend on: of templates, policies and clusters, in order.

    If none is known to have affected them, return all changes that may have.
    """
    history = [entry for key in workloads for entry in _records(client, f"timeline/{key}", planned.number)]
    own = [entry for entry in history if _topic(entry) == topics.SPECS]
    facts = [
        entry
        for topic in topics.FACT_TOPICS
        for entry in _records(client, "log", planned.number, topic=topic)
    ]
    causes = {entry.cause for entry in history}
    names = _clusters(planned, workloads) | _clusters(now, workloads)
    lasting = [entry for entry in facts if entry.type not in _REPORTS]
    matters = [entry for entry in facts if entry.position in causes]
    matters += [entry for entry in lasting if _topic(entry) == topics.CLUSTERS and entry.key in names]
    return _named([*own, *matters] or lasting)


def _records(client: Client, path: str, after: int, **query: str) -> Iterable[Entry]:
    return itertools.islice(server_reads.entries(client, path, start=after, **query), _READ_MAX)


def _topic(entry: Entry) -> str:
    return entry.position.partition("/")[0]


def _clusters(prediction: Prediction, workloads: Collection[str]) -> set[str]:
    """Return the clusters that workloads have before or after the change."""
    return {
        name
        for change in prediction.changed
        if change.key in workloads
        for name in (*change.before, *change.after)
    }


def _named(entries: Iterable[Entry]) -> list[str]:
    """Return the newest record of each kind about each object, as text."""
    newest: dict[tuple[str, str], int] = {}
    for entry in entries:
        about = entry.key, summaries.event_name(entry.type)
        newest[about] = max(entry.number, newest.get(about, 0))
    ordered = sorted(newest.items(), key=lambda item: item[1])
    return [f"{event} of {key} at number {number}" for (key, event), number in ordered]
