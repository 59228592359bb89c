"""Status fields of built-in kinds beyond replicas: what members report of them and how it is aggregated.

Fields and sums are those of the reference's default interpreter. Fields that a status omits (most omit zeros)
are not reported.
"""

from typing import Final

from engine.objects.interpreters import StatusField
from events import job_statuses, shapes, status_values

_Kind = tuple[str, str]


_FURTHER: Final[dict[_Kind, tuple[StatusField, ...]]] = {
    ("apps/v1", "StatefulSet"): (
        StatusField(json_path=".currentRevision"),
        StatusField(json_path=".updateRevision"),
    ),
    ("batch/v1", "Job"): (StatusField(json_path=job_statuses.STARTED),),
}

FIELDS: Final[dict[_Kind, tuple[StatusField, ...]]] = {
    kind: (*(StatusField(json_path=path, aggregate="Sum") for path in paths), *_FURTHER.get(kind, ()))
    for kind, paths in status_values.COUNTS.items()
}
"""Fields that the engine aggregates, by kind."""

_BALANCED: Final = (status_values.ADDRESSES, status_values.HOST_NAMES)

_PROJECTED: Final[dict[_Kind, tuple[str, ...]]] = {
    ("batch/v1", "Job"): (job_statuses.COMPLETE, job_statuses.COMPLETED, job_statuses.FAILED),
    ("batch/v1", "CronJob"): (
        status_values.ACTIVE,
        status_values.LAST_SCHEDULED,
        status_values.LAST_SUCCESSFUL,
    ),
    ("networking.k8s.io/v1", "Ingress"): _BALANCED,
    ("v1", "PersistentVolume"): (status_values.PHASE,),
    ("v1", "PersistentVolumeClaim"): (status_values.PHASE,),
    ("v1", "Pod"): (status_values.CONTAINERS_READY, status_values.PHASE),
    ("v1", "Service"): _BALANCED,
}
"""Fields that the projections aggregate: a Job's end, addresses, times and phases."""

READINGS: Final = {
    kind: shapes.Reading(
        values=tuple(
            sorted({*(field.json_path for field in FIELDS.get(kind, ())), *_PROJECTED.get(kind, ())})
        )
    )
    for kind in (*FIELDS, *(kind for kind in _PROJECTED if kind not in FIELDS))
}
"""Status values that works request from members, by kind."""
