"""``import``: take over an existing Karmada's objects and placements, so that nothing moves."""

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Final, cast

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from engine.agent.api_errors import ApiError
from engine.agent.kubeconfigs import Access, KubeconfigError
from engine.agent.member_api import MemberApi, Resource, group_kind
from engine.cli import apply, failures, karmada, kube_objects, options, output, server_reads
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects, Target
from engine.domain import marks
from engine.observer.observed_bindings import APPLIED
from events import imported_placements
from events.json_values import Json, as_object, as_objects, part

_KINDS: Final = (
    ("", "Namespace"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("cluster.karmada.io", "Cluster"),
    ("policy.karmada.io", "OverridePolicy"),
    ("policy.karmada.io", "ClusterOverridePolicy"),
    ("policy.karmada.io", "ClusterTaintPolicy"),
    ("policy.karmada.io", "PropagationPolicy"),
    ("policy.karmada.io", "ClusterPropagationPolicy"),
)
"""Groups and kinds that are copied, those first on which others depend; templates follow."""

_BINDINGS: Final = (("work.karmada.io", "ResourceBinding"), ("work.karmada.io", "ClusterResourceBinding"))
_DEFINITIONS: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_OWN_NAMESPACES: Final = ("kube-", "karmada-", "default")
_KEPT: Final = ("name", "namespace", "labels", "annotations")
_SETTLED: Final = 0
_DIFFERENT: Final = 2
_WAIT_S: Final = 60.0
_STILL_S: Final = 3.0
"""Without a change for this time, the rest is not waited for."""

_POLL_S: Final = 0.2

Binding = tuple[str, str]
"""Namespace and name of a binding."""


class Moved(Struct, rename="camel"):
    """A binding that is placed otherwise than before; ``after`` is None if it does not exist."""

    binding: str
    before: dict[str, int]
    after: dict[str, int] | None


class Report(Struct, rename="camel"):
    """Objects copied by kind, those refused with their reasons, and the bindings that are not as before.

    ``notes`` say what else is not taken over.
    """

    copied: dict[str, int]
    refused: list[Json]
    bindings: int
    moved: list[Moved]
    notes: list[str]


class _Source(Struct):
    """The objects of the other control plane, by kind in the order of copying, and its placements."""

    objects: list[Json]
    placements: dict[Binding, imported_placements.ImportedPlacement]
    notes: list[str]


def import_karmada(
    place: karmada.Source,
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative=(), help="Check, write nothing.")] = False,
    server: options.Server = options.SERVER,
) -> int:
    """Copy clusters, policies, templates and their placements into the running server."""
    try:
        source = asyncio.run(_read(place.access()))
    except (ApiError, KubeconfigError) as error:
        raise failures.Failure(
            f"Karmada's API: {error}", "use a kubeconfig whose user can list its objects"
        ) from None
    with server.client() as client:
        report = _copied(KubeObjects(client), source, dry_run=dry_run)
        if not dry_run:
            report.moved = _moved(client, source)
    if server.json:
        output.json(report)
    else:
        _show(report)
    return _DIFFERENT if report.refused or report.moved else _SETTLED


async def _read(access: Access) -> _Source:
    api = MemberApi(access)
    try:
        served = {group_kind(each.api_version, each.kind): each for each in await api.discover()}
        found = [value for kind in _KINDS for value in await _listed(api, served.get(kind))]
        bindings = [value for kind in _BINDINGS for value in await _listed(api, served.get(kind))]
        placements = {_name(value): _placement(value) for value in bindings}
        wanted: dict[tuple[str, str], dict[Binding, Binding]] = {}
        for value in bindings:
            resource = part(value, "spec", "resource")
            kind = group_kind(str(resource.get("apiVersion")), str(resource.get("kind")))
            template = str(resource.get("namespace", "")), str(resource.get("name"))
            wanted.setdefault(kind, {})[template] = _name(value)
        for value in await _listed(api, served.get(_DEFINITIONS)):
            spec = part(value, "spec")
            if (str(spec.get("group")), str(part(spec, "names").get("kind"))) in wanted:
                found.append(value)
        for kind, templates in sorted(wanted.items()):
            for value in await _listed(api, served.get(kind)):
                binding = templates.get(_name(value))
                if binding is not None:
                    found.append(_with_placement(value, placements[binding]))
    finally:
        await api.aclose()
    copied = [value for value in found if not _is_own_namespace(value)]
    return _Source(copied, placements, _notes(copied, bindings))


def _notes(copied: Sequence[Json], bindings: Sequence[Json]) -> list[str]:
    """Return what can't be taken over."""
    clusters = [_name(value)[1] for value in copied if value["kind"] == "Cluster"]
    evicting = [_name(value) for value in bindings if part(value, "spec").get("gracefulEvictionTasks")]
    notes: list[str] = []
    if clusters:
        notes.append(
            f"{len(clusters)} clusters have no agent here, so nothing is changed in them: "
            f"reballast join {clusters[0]} --kubeconfig FILE"
        )
    notes += [
        f"the evictions of {'/'.join(filter(None, name))} end without a trace here" for name in evicting
    ]
    return notes


async def _listed(api: MemberApi, resource: Resource | None) -> list[Json]:
    return [] if resource is None else (await api.list(resource)).items


def _copied(objects: KubeObjects, source: _Source, *, dry_run: bool) -> Report:
    """Write the objects; those that are there already are made equal."""
    chosen = kube_objects.Options("Warn", dry_run)
    report = Report({}, [], len(source.placements), [], source.notes)
    for number, value in enumerate(source.objects):
        output.progress(f"import: {number} of {len(source.objects)} objects")
        kind, metadata = str(value["kind"]), part(value, "metadata")
        resource = objects.resource(str(value["apiVersion"]), kind)
        if resource is None:
            name = f"{kind}/{metadata.get('name')}"
            report.refused.append({"object": name, "problems": [{"reason": "the kind is not served"}]})
            continue
        target = Target(resource, str(metadata.get("namespace", "")), str(metadata["name"]))
        result = apply.applied(objects, target, _clean(value), chosen)
        if not result.get("problems") and resource.is_cluster and not dry_run:
            reply = objects.patch(target, {"status": value.get("status")}, chosen, part="status")
            result = kube_objects.result(target, "created", reply)
        if result.get("problems"):
            report.refused.append(result)
        else:
            report.copied[kind] = report.copied.get(kind, 0) + 1
    output.progress("")
    return report


def _moved(client: Client, source: _Source) -> list[Moved]:
    """Return the bindings that are not placed as before, once all are placed or a minute has passed."""
    until_s, changed_s = time.monotonic() + _WAIT_S, time.monotonic()
    before: list[Moved] | None = None
    while True:
        ours = {
            _name(value): dict(_placement(value).clusters) for value in server_reads.pages(client, "bindings")
        }
        moved = [
            Moved("/".join(filter(None, name)), dict(placed.clusters), ours.get(name))
            for name, placed in sorted(source.placements.items())
            if ours.get(name) != placed.clusters
        ]
        now_s = time.monotonic()
        if moved != before:
            before, changed_s = moved, now_s
        if not moved or now_s > until_s or now_s > changed_s + _STILL_S:
            return moved
        time.sleep(_POLL_S)


def _show(report: Report) -> None:
    output.table(("KIND", "COPIED"), list(report.copied.items()))
    for result in report.refused:
        reasons = "; ".join(str(problem.get("reason", "")) for problem in as_objects(result.get("problems")))
        output.warn(f"not copied: {result.get('object') or result.get('name')}: {reasons}")
    for each in report.moved:
        after = "no binding" if each.after is None else each.after
        output.warn(f"not as before: {each.binding}: {each.before}, now {after}")
    for note in report.notes:
        output.warn(f"note: {note}")
    settled = report.bindings - len(report.moved)
    output.print_line(f"{settled} of {report.bindings} bindings are placed as before.")


def _clean(value: Json) -> Json:
    """Return an object without the fields and marks that its control plane owns."""
    metadata = {name: item for name, item in part(value, "metadata").items() if name in _KEPT}
    for name, owned in (("labels", marks.LABELS), ("annotations", marks.ANNOTATIONS)):
        texts = as_object(metadata.pop(name, None)) or {}
        kept = {text: item for text, item in texts.items() if text not in {*owned, *marks.CLAIMS, APPLIED}}
        if kept:
            metadata[name] = kept
    return {name: item for name, item in value.items() if name != "status"} | {"metadata": metadata}


def _with_placement(value: Json, placement: imported_placements.ImportedPlacement) -> Json:
    if not placement.clusters:
        return value
    metadata = part(value, "metadata")
    annotations = as_object(metadata.get("annotations")) or {}
    added = {imported_placements.ANNOTATION: msgspec.json.encode(placement).decode()}
    return {**value, "metadata": {**metadata, "annotations": {**annotations, **added}}}


def _placement(binding: Json) -> imported_placements.ImportedPlacement:
    clusters = {
        str(target["name"]): int(cast("int", target.get("replicas", 0)))
        for target in as_objects(part(binding, "spec").get("clusters"))
    }
    status = part(binding, "status")
    return imported_placements.ImportedPlacement(
        clusters, str(status.get("schedulerObservingAffinityName", ""))
    )


def _name(value: Json) -> Binding:
    metadata = part(value, "metadata")
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _is_own_namespace(value: Json) -> bool:
    return value.get("kind") == "Namespace" and _name(value)[1].startswith(_OWN_NAMESPACES)
