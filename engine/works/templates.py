"""The part of a template that a member needs to run its replicas.

Kinds with replicas, built-in or custom, are read by their pod template at ``spec.template``. Replicas without a pod
template request nothing.
"""

import hashlib
import re
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.openapi_schemas import DefinitionError
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import quantity, schedules
from engine.objects import priorities, workloads
from engine.shared_values import shared, shared_labels
from engine.works import autoscalers, budgets, node_rules, quotas, strategies
from engine.works.amounts import ONE_POD, Amounts, amounts_of
from events import kube_objects, vocabulary
from events.json_values import DECODING_ERRORS, Json, canonical_json
from events.kube_objects import KubeObject

_DIGEST_LETTERS: Final = 10
PRIORITY_CLASS: Final = "PriorityClass"
DEFINITION: Final = "CustomResourceDefinition"
_LIMITS: Final = b'"limits"'
POD: Final = "Pod"
REPLICA_SET: Final = "ReplicaSet"
HASH_LABEL: Final = "pod-template-hash"
_BALANCED: Final = b'"LoadBalancer"'
STATUS: Final = "simulation.reballast.io/status"
"""Annotation with the status of an object in simulated members, in addition to its replicas."""


RUN_SECONDS: Final = "simulation.reballast.io/run-seconds"
"""Annotation of a Job: how long each of its pods runs in simulated members until it succeeds."""

COUNTED_BY_MEMBERS: Final = ("DaemonSet", "ReplicationController")
"""Kinds whose replicas the control plane does not divide: a member runs one per node, or the number in the manifest."""

_MISSING_IMAGE: Final = re.compile(r"fake/|[^/]*\.invalid(:[0-9]+)?/")
"""Images of registries that do not exist."""

_RUN_MS: Final = 5_000
_SECONDS_DIGITS_MAX: Final = 9
_JOBS_KEPT: Final = 3
"""Ended Jobs that a CronJob keeps by default, as in Kubernetes."""

_JOBS_KEPT_MAX: Final = 10


class Rank(Struct, frozen=True, gc=False):
    """Priority of a PriorityClass; ``preempts``: whether its pods may preempt others."""

    value: int
    preempts: bool = True
    is_default: bool = False


class CronJob(Struct, frozen=True, gc=False):
    """When a CronJob starts Jobs, how long they run, and how many ended ones are kept.

    While it ``is_suspended`` it starts none.
    """

    schedule: schedules.Schedule
    run_ms: int
    kept: int
    is_suspended: bool = False


class Template(Struct, frozen=True, gc=False):
    """The values of a manifest that a simulated cluster uses.

    Workloads: ``amounts`` and ``limits`` are the resources of one replica, ``count`` the number of replicas,
    ``labels``, ``priority_class`` and ``containers`` are those of its pods, ``digest`` changes when the pods must be
    replaced, and ``strategy`` says how (None: all at once). ``lacks_image``: no registry has an image of the pods, so
    they do not start. ``is_terminating``: the pods have a deadline. ``scheduling``: the nodes that take the pods.
    ``retains``: members decide the number of replicas. ``load`` is the annotation ``autoscalers.LOAD``.

    Jobs: ``completions``, ``run_ms``, the time until a pod succeeds (0 for kinds that do not end), and
    ``is_suspended``: they run no pods.

    Other kinds: ``rank`` of a PriorityClass, ``budget`` of a PodDisruptionBudget, ``cron`` of a CronJob, ``scaler`` of
    a HorizontalPodAutoscaler, ``quota`` of a ResourceQuota, and ``served``, the kinds that a CustomResourceDefinition
    defines. ``is_balanced``: a load balancer has an address for the Service or Ingress.

    ``status`` is a JSON object to show as the simulated status, or empty.
    """

    amounts: Amounts
    labels: dict[str, str]
    digest: str
    priority_class: str = ""
    rank: Rank | None = None
    status: bytes = b""
    containers: tuple[str, ...] = ()
    served: tuple[Resource, ...] = ()
    count: int = 1
    completions: int | None = None
    run_ms: int = 0
    is_balanced: bool = False
    budget: budgets.Budget | None = None
    cron: CronJob | None = None
    retains: bool = False
    lacks_image: bool = False
    load: str = ""
    scaler: autoscalers.Scaler | None = None
    quota: quotas.Quota | None = None
    limits: Amounts = ()
    is_terminating: bool = False
    strategy: strategies.Strategy | None = None
    scheduling: node_rules.NodeRules = node_rules.ANY
    is_suspended: bool = False

    @property
    def pod(self) -> quotas.Pod:
        """The facts by which the scopes of quotas select its pods."""
        return quotas.Pod(
            is_best_effort=self.amounts == ONE_POD and not self.limits,
            is_terminating=self.is_terminating,
            priority_class=self.priority_class,
        )


class _Container(Struct, frozen=True):
    name: str = ""
    image: str = ""


class _Limits(Struct, frozen=True):
    limits: dict[str, str | int | float] = {}


class _LimitedContainer(Struct, frozen=True):
    resources: _Limits = _Limits()


# Records of other producers may have nulls, which the write API removes.
class _PodMetadata(Struct, frozen=True):
    labels: dict[str, str] | None = None


class _PodSpec(Struct, frozen=True, rename="camel"):
    priority_class_name: str | None = None
    active_deadline_seconds: int | None = None
    containers: msgspec.Raw = msgspec.Raw(b"[]")


class _PodTemplate(Struct, frozen=True):
    metadata: _PodMetadata | None = None
    spec: _PodSpec = _PodSpec()


class _Spec(Struct, frozen=True):
    template: msgspec.Raw = msgspec.Raw(b"{}")
    containers: msgspec.Raw = msgspec.Raw(b"[]")
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    # Raw, because in other kinds than Service and Job these may be anything.
    type: msgspec.Raw = msgspec.Raw(b"null")
    suspend: msgspec.Raw = msgspec.Raw(b"false")


class _Metadata(Struct, frozen=True):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Manifest(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    value: int = 0
    preemption_policy: str = ""
    global_default: bool = False


class _CronSpec(Struct, frozen=True, rename="camel"):
    schedule: str = ""
    time_zone: str | None = None
    suspend: bool | None = None
    successful_jobs_history_limit: int | None = None


class _CronManifest(Struct, frozen=True):
    spec: _CronSpec = _CronSpec()


_CRON_MANIFEST: Final = msgspec.json.Decoder(_CronManifest)
_MANIFEST: Final = msgspec.json.Decoder(_Manifest)
_POD_TEMPLATE: Final = msgspec.json.Decoder(_PodTemplate)
_CONTAINERS: Final = msgspec.json.Decoder(list[_Container])
_LIMITED: Final = msgspec.json.Decoder(list[_LimitedContainer])
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])
_ANY: Final[msgspec.json.Decoder[object]] = msgspec.json.Decoder()


def letters(text: str | bytes, count: int) -> str:
    """Return ``count`` letters for a generated name, which depend only on ``text``."""
    data = text.encode() if isinstance(text, str) else text
    number = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "big")
    chosen: list[str] = []
    for _ in range(count):
        number, index = divmod(number, len(vocabulary.SAFE_LETTERS))
        chosen.append(vocabulary.SAFE_LETTERS[index])
    return "".join(chosen)


EMPTY: Final = Template(ONE_POD, {}, letters(b"{}", _DIGEST_LETTERS))
"""The template of manifests without a readable pod template: its replicas request nothing."""


def read(manifest: bytes | msgspec.Raw) -> Template:
    """Return the template of a manifest; EMPTY if it has no pod template of a known form."""
    try:
        return kube_objects.decoded(_read, manifest)
    except DECODING_ERRORS:
        return EMPTY


def _read(manifest: bytes | msgspec.Raw) -> Template:
    """Return the template of a manifest; raises ``DECODING_ERRORS``."""
    decoded = _MANIFEST.decode(manifest)
    raw = decoded.spec.template
    pod = _POD_TEMPLATE.decode(raw)
    # A pod template has the same form in every kind, so read it as a Deployment's.
    owner = ("v1", POD) if decoded.kind == POD else ("apps/v1", "Deployment")
    requests = workloads.size(*owner, manifest).requests or ()
    amounts = amounts_of(requests)
    limits = (*_limits(pod.spec.containers), *_limits(decoded.spec.containers))
    containers = _containers(decoded)
    own = _POD_TEMPLATE.decode(manifest).spec if decoded.kind == POD else pod.spec
    labels = (pod.metadata and pod.metadata.labels) or {}
    # The digest of a Deployment's pod template is a label on the Deployment's ReplicaSet.
    own_digest = labels.get(HASH_LABEL) if decoded.kind == REPLICA_SET else None
    digest = own_digest or letters(canonical_json(_pod_template(decoded)), _DIGEST_LETTERS)
    annotations, kind = decoded.metadata.annotations or {}, (decoded.api_version, decoded.kind)
    spec, is_job = decoded.spec, kind == vocabulary.JOB
    count = workloads.job_replicas(spec.parallelism, spec.completions) if is_job else spec.replicas
    return Template(
        shared(amounts),
        shared_labels(labels),
        digest,
        own.priority_class_name or "",
        _rank(decoded),
        annotations.get(STATUS, "").encode(),
        containers,
        _served(decoded, manifest),
        count=1 if count is None else count,
        completions=decoded.spec.completions,
        run_ms=_run_ms(annotations.get(RUN_SECONDS, "")) if is_job else 0,
        is_balanced=_is_balanced(decoded),
        budget=budgets.read(manifest) if kind == budgets.KIND else None,
        cron=_cron(manifest, annotations) if kind == vocabulary.CRON_JOB else None,
        lacks_image=_lacks_image(pod.spec.containers) or _lacks_image(decoded.spec.containers),
        retains=(decoded.metadata.labels or {}).get(marks.RETAIN_REPLICAS) == "true",
        load=annotations.get(autoscalers.LOAD, ""),
        scaler=autoscalers.read(manifest) if decoded.kind == autoscalers.KIND else None,
        quota=quotas.read(manifest) if decoded.kind == quotas.KIND else None,
        limits=limits,
        is_terminating=own.active_deadline_seconds is not None,
        strategy=shared(strategies.read(decoded.kind, manifest)),
        scheduling=node_rules.read(raw),
        is_suspended=is_job and bytes(spec.suspend) == b"true",
    )


def _cron(manifest: bytes | msgspec.Raw, annotations: dict[str, str]) -> CronJob | None:
    """Return when a CronJob starts Jobs; None for a schedule that can't be followed."""
    try:
        spec = _CRON_MANIFEST.decode(manifest).spec
    except (msgspec.MsgspecError, RecursionError):
        return None
    schedule = schedules.parse(spec.schedule, spec.time_zone or "")
    if schedule is None:
        return None
    kept = _JOBS_KEPT if spec.successful_jobs_history_limit is None else spec.successful_jobs_history_limit
    run_ms = _run_ms(annotations.get(RUN_SECONDS, ""))
    return CronJob(schedule, run_ms, min(max(kept, 0), _JOBS_KEPT_MAX), bool(spec.suspend))


def _is_balanced(manifest: _Manifest) -> bool:
    kind = manifest.api_version, manifest.kind
    return kind == vocabulary.INGRESS or (
        kind == vocabulary.SERVICE and bytes(manifest.spec.type) == _BALANCED
    )


def _run_ms(seconds: str) -> int:
    """How long the pods of a Job run, in milliseconds; the default unless the annotation is a number of seconds."""
    is_number = seconds.isascii() and seconds.isdecimal() and len(seconds) <= _SECONDS_DIGITS_MAX
    return max(int(seconds) * 1000, 1) if is_number else _RUN_MS


def _served(decoded: _Manifest, manifest: bytes | msgspec.Raw) -> tuple[Resource, ...]:
    if decoded.kind != DEFINITION:
        return ()
    try:
        return custom_kinds.read(KubeObject(_OBJECT.decode(manifest)))
    except (DefinitionError, ValueError):
        return ()


def _pod_template(manifest: _Manifest) -> Json:
    """Return the pod template with the API's defaults: its digest does not depend on whether a client writes them."""
    head: Json = {"apiVersion": manifest.api_version, "kind": manifest.kind}
    value = KubeObject({**head, "spec": {"template": _ANY.decode(manifest.spec.template)}})
    return built_in_defaults.with_defaults(value).object_at("spec", "template")


def _containers(manifest: _Manifest) -> tuple[str, ...]:
    if manifest.kind != POD:
        return ()
    return tuple(container.name for container in _CONTAINERS.decode(manifest.spec.containers))


def _limits(containers: msgspec.Raw) -> Amounts:
    """Return the limits of a pod, the sums over its containers; raises msgspec.MsgspecError and QuantityError."""
    limited = _LIMITED.decode(containers) if _LIMITS in bytes(containers) else []
    return tuple(sorted(quantity.totals(container.resources.limits for container in limited).items()))


def _lacks_image(containers: msgspec.Raw) -> bool:
    try:
        decoded = _CONTAINERS.decode(containers)
    except msgspec.MsgspecError:
        return False  # The kind has containers in another form: their images are not checked.
    return any(_MISSING_IMAGE.match(container.image) for container in decoded)


def _rank(manifest: _Manifest) -> Rank | None:
    if manifest.kind != PRIORITY_CLASS:
        return None
    return Rank(
        manifest.value,
        preempts=manifest.preemption_policy != priorities.NEVER,
        is_default=manifest.global_default,
    )
