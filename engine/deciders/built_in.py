"""Built-in kinds whose status says more than replicas: what members report of it, and what stands for it over all.

The fields and their sums are those of the reference's default interpreter. What a status leaves out, as most leave out
numbers that are 0, is not reported.
"""

from typing import Final

from engine.objects.interpreters import StatusField
from events import job_statuses, shapes

_Kind = tuple[str, str]


def _sums(*names: str) -> tuple[StatusField, ...]:
    return tuple(StatusField(json_path=f".{name}", aggregate="Sum") for name in names)


FIELDS: Final[dict[_Kind, tuple[StatusField, ...]]] = {
    ("apps/v1", "DaemonSet"): _sums(
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberAvailable",
        "numberMisscheduled",
        "numberReady",
        "numberUnavailable",
        "updatedNumberScheduled",
    ),
    ("batch/v1", "Job"): (
        *_sums("active", "failed", "succeeded"),
        StatusField(json_path=job_statuses.STARTED),
    ),
    ("policy/v1", "PodDisruptionBudget"): _sums(
        "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"
    ),
}
"""What is put together of a kind's statuses; a Job's end is told by all of its members together (see the views)."""

_MORE: Final[dict[_Kind, tuple[str, ...]]] = {
    ("batch/v1", "Job"): (job_statuses.COMPLETE, job_statuses.COMPLETED, job_statuses.FAILED)
}

READINGS: Final = {
    kind: shapes.Reading(values=tuple(sorted({*(field.json_path for field in fields), *_MORE.get(kind, ())})))
    for kind, fields in FIELDS.items()
}
"""What members are to report of a kind."""
