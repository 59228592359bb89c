"""What can be asked of a member cluster: join, leave, taint, label, describe.

A change of one thing is one small event; a change of several is the cluster joined again, whole.
"""

from collections.abc import Sequence
from typing import Final, cast

import msgspec
from msgspec import Struct

from engine.gateway import door_asks as asks
from engine.gateway import door_merging as merging
from engine.gateway import door_wishes as wishes
from engine.gateway.door_results import Result
from events import clusters, enums, shapes, times
from events import forms_kinds as kinds
from events.forms_schema import Fault, as_list, as_object
from projections import owners
from projections.cluster_documents import FINALIZER, managed_fields
from projections.clusters import Cluster, Spec, edited

Json = dict[str, object]

CORDON: Final = clusters.Taint(key="cluster.karmada.io/unschedulable", effect="NoSchedule")


class TaintKey(Struct, frozen=True, kw_only=True):
    """A taint to take away; without an effect, all with this key."""

    key: str
    effect: str = ""


class ApplyCluster(Struct, frozen=True, kw_only=True):
    """A Cluster object is wanted as a document says."""

    wish: wishes.Wish

    @property
    def target(self) -> wishes.Target:
        """See ``door_asks.Ask``."""
        return self.wish.target

    def decide(self, standing: asks.Standing) -> asks.Write | Result | wishes.Unfit:
        """See ``door_asks.Ask``."""
        cluster = cast("Cluster | None", standing)
        wish = self.wish
        if wish.seen and (cluster is None or cluster.number != wish.seen):
            return asks.late(wish.target, f"resourceVersion {wish.seen} is not the newest")
        if cluster is not None and cluster.leaving_ms:
            reason = f"cluster {cluster.name} is leaving, and does not join meanwhile"
            remedy = "wait until it has left, or let it go at once: reballast unjoin NAME --force"
            return asks.contested(wish.target, "metadata.deletionTimestamp", reason, remedy)
        live = {} if cluster is None else document(cluster)
        value = merging.three_way({}, wish.value, live)
        if faults := _faults(wish.target, value):
            return wishes.unfit(wish.source, faults, wish.target)
        status = as_object(wish.source.value.get("status")) or {}
        return changed(wish.target, cluster, wanted(value, cluster, status), wish.warnings)


class PatchCluster(Struct, frozen=True, kw_only=True):
    """A merge patch of a Cluster object."""

    target: wishes.Target
    patch: Json
    action: str = "patched"
    seen: int = 0

    def decide(self, standing: asks.Standing) -> asks.Write | Result:
        """See ``door_asks.Ask``."""
        cluster = cast("Cluster | None", standing)
        if cluster is None:
            return asks.not_found(self.target)
        if self.seen and cluster.number != self.seen:
            return asks.late(self.target, f"resourceVersion {self.seen} is not the newest")
        value = merging.patched(document(cluster), self.patch)
        if faults := _faults(self.target, value):
            return asks.refused(self.target, faults)
        found = changed(self.target, cluster, wanted(value, cluster, {}), ())
        if isinstance(found, asks.Write):
            return asks.Write(action=self.action, events=found.events)
        return found


class LabelCluster(Struct, frozen=True, kw_only=True):
    """Labels to set, or to take away (None)."""

    target: wishes.Target
    labels: dict[str, str | None]
    overwrite: bool = False

    def decide(self, standing: asks.Standing) -> asks.Write | Result:
        """See ``door_asks.Ask``."""
        cluster = cast("Cluster | None", standing)
        if cluster is None:
            return asks.not_found(self.target)
        present: Json = {**cluster.spec.labels}
        if faults := asks.label_faults(present, self.labels, overwrite=self.overwrite):
            return asks.refused(self.target, faults)
        patch: Json = {"metadata": {"labels": dict(self.labels)}}
        return PatchCluster(target=self.target, patch=patch, action="labeled").decide(standing)


class Retaint(Struct, frozen=True, kw_only=True):
    """Taints to set and taints to take away. ``action`` names it; absent, it follows from what is done."""

    target: wishes.Target
    added: tuple[clusters.Taint, ...] = ()
    removed: tuple[TaintKey, ...] = ()
    action: str = ""

    def decide(self, standing: asks.Standing) -> asks.Write | Result:
        """See ``door_asks.Ask``."""
        cluster = cast("Cluster | None", standing)
        if cluster is None:
            return asks.not_found(self.target)
        if faults := self._faults(cluster):
            return asks.refused(self.target, faults)
        present = {(taint.key, taint.value, taint.effect) for taint in cluster.spec.taints}
        added = [taint for taint in self.added if (taint.key, taint.value, taint.effect) not in present]
        if not added and not self.removed:
            return cluster_done(self.target, "unchanged", cluster)
        events: list[shapes.Event] = [
            clusters.ClusterUntainted(name=cluster.name, key=gone.key, effect=gone.effect)
            for gone in self.removed
        ]
        events.extend(clusters.ClusterTainted(name=cluster.name, taint=taint) for taint in added)
        word = ("modified" if self.removed else "tainted") if added else "untainted"
        return asks.Write(action=self.action or word, events=tuple(events))

    def _faults(self, cluster: Cluster) -> list[Fault]:
        value = _named(self.target.name, {}, {"taints": [_taint_document(taint) for taint in self.added]})
        faults = _faults(self.target, value)
        for gone in self.removed:
            if not any(_matches(taint, gone) for taint in cluster.spec.taints):
                words = f"{gone.key}:{gone.effect}" if gone.effect else gone.key
                faults.append(Fault("spec.taints", f'taint "{words}" not found on {cluster.name}'))
        return faults


class Leave(Struct, frozen=True, kw_only=True):
    """The cluster is to leave, once what it was given is gone; with ``force`` at once."""

    target: wishes.Target
    force: bool = False

    def decide(self, standing: asks.Standing) -> asks.Write | Result:
        """See ``door_asks.Ask``."""
        cluster = cast("Cluster | None", standing)
        if cluster is None:
            return asks.not_found(self.target)
        version = cluster.head.version
        if self.force:
            return asks.Write(action="deleted", events=(left(cluster),))
        if cluster.leaving_ms:
            return cluster_done(self.target, "unchanged", cluster)
        event = clusters.ClusterLeaving(name=cluster.name, expects=version)
        return asks.Write(action="deleted", events=(event,))


def left(cluster: Cluster) -> clusters.ClusterLeft:
    """That a cluster is no member any more, as it stands now."""
    return clusters.ClusterLeft(name=cluster.name, uid=cluster.head.uid, expects=cluster.head.version)


def is_released(cluster: Cluster, value: Json) -> bool:
    """Whether a cluster that is leaving is waited for no more: the finalizer of its object is taken away."""
    metadata = as_object(value.get("metadata")) or {}
    return bool(cluster.leaving_ms) and FINALIZER not in (as_list(metadata.get("finalizers")) or [])


def document(cluster: Cluster) -> Json:
    """The cluster as an object, as far as people write it."""
    spec = cluster.spec
    fields: Json = {
        "provider": spec.provider,
        "region": spec.region,
        "zones": list(spec.zones),
        "taints": [_taint_document(taint) for taint in spec.taints],
        "resourceModels": msgspec.to_builtins(spec.resource_models),
        "syncMode": spec.sync_mode,
        "apiEndpoint": spec.api_endpoint,
        "id": spec.id,
        "proxyURL": spec.proxy_url,
        "secretRef": _reference_document(spec.secret_ref),
        "impersonatorSecretRef": _reference_document(spec.impersonator_secret_ref),
    }
    found = _named(cluster.name, {**spec.labels}, {name: item for name, item in fields.items() if item})
    kept: Json = {"annotations": spec.annotations, "managedFields": managed_fields(spec)}
    metadata = as_object(found["metadata"]) or {}
    return {**found, "metadata": {**metadata, **{name: item for name, item in kept.items() if item}}}


def _reference_document(reference: clusters.SecretRef | None) -> Json | None:
    return None if reference is None else {"namespace": reference.namespace, "name": reference.name}


def cluster_done(
    target: wishes.Target, action: str, cluster: Cluster | None, warnings: tuple[str, ...] = ()
) -> Result:
    """The answer when the cluster is as it was asked to be."""
    return Result(
        action=action,
        resource=target.resource,
        name=target.name,
        resource_version=cluster.number if cluster else 0,
        warnings=warnings,
        object=None if cluster is None else msgspec.Raw(wishes.encode(document(cluster))),
    )


def built_in_apis() -> tuple[clusters.ApiKind, ...]:
    """What a cluster is taken to serve until it says otherwise: the built-in kinds."""
    groups: dict[str, list[str]] = {}
    for kind in kinds.KINDS:
        if kind.route in {"template", "namespace"}:
            groups.setdefault(kind.api_version, []).append(kind.kind)
    return tuple(
        clusters.ApiKind(group_version=group, kinds=tuple(sorted(found)))
        for group, found in sorted(groups.items())
    )


def changed(
    target: wishes.Target, cluster: Cluster | None, facts: Spec, warnings: tuple[str, ...]
) -> asks.Write | Result:
    """A small event for each taint, or for labels or location, where nothing else changed; else the whole cluster.

    Whoever writes, the same change of the object is the same event.
    """
    if cluster is None:
        event = _joined(target.name, facts, 0)
        return asks.Write(action="created", events=(event,), warnings=warnings)
    old = cluster.spec
    changes = {name for name in Spec.__struct_fields__ if getattr(old, name) != getattr(facts, name)}
    if not changes:
        return cluster_done(target, "unchanged", cluster, warnings)
    events = _small_events(cluster, facts, changes - {"managed_fields"})
    folded = old
    for event in events:
        folded = edited(folded, event, 0)
    if not events or _timeless(folded) != _timeless(facts):
        events = [_joined(target.name, facts, cluster.head.version)]
    return asks.Write(action="configured", events=tuple(events), warnings=warnings)


def _small_events(cluster: Cluster, facts: Spec, changes: set[str]) -> list[shapes.Event]:
    """What amounts to these changes of a cluster, if small events do."""
    name, expects, owned = cluster.name, cluster.head.version, facts.managed_fields
    if changes == {"labels"}:
        labelled = clusters.ClusterLabelled(
            name=name, labels=facts.labels, managed_fields=owned, expects=expects
        )
        return [labelled]
    if changes and changes <= {"provider", "region", "zones"}:
        described = clusters.ClusterDescribed(
            name=name,
            provider=facts.provider,
            region=facts.region,
            zones=facts.zones,
            managed_fields=owned,
            expects=expects,
        )
        return [described]
    if changes != {"taints"}:
        return []
    before, after = cluster.spec.taints, facts.taints
    kept = {(taint.key, taint.effect) for taint in after}
    gone = [taint for taint in before if (taint.key, taint.effect) not in kept]
    untainted = [
        clusters.ClusterUntainted(name=name, key=each.key, effect=each.effect, managed_fields=owned)
        for each in gone
    ]
    tainted = [
        clusters.ClusterTainted(name=name, taint=each, managed_fields=owned)
        for each in after
        if each not in before
    ]
    found: list[shapes.Event] = [*untainted, *tainted]
    if len(found) == 1:
        return [msgspec.structs.replace(found[0], expects=expects)]
    # Of several in one write only the first could name a version, and the others would take effect without it.
    # Each concerns its own taint, so all of them hold beside whatever others write.
    return found


def _timeless(spec: Spec) -> Spec:
    """The facts without the times of taints, which the fold fills in."""
    taints = tuple(msgspec.structs.replace(taint, time_added_ms=None) for taint in spec.taints)
    return msgspec.structs.replace(spec, taints=taints)


def _joined(name: str, spec: Spec, expects: int) -> clusters.ClusterJoined:
    return clusters.ClusterJoined(
        name=name,
        labels=spec.labels,
        provider=spec.provider,
        region=spec.region,
        zones=spec.zones,
        taints=spec.taints,
        apis=spec.apis,
        resource_models=spec.resource_models,
        sync_mode=spec.sync_mode,
        api_endpoint=spec.api_endpoint,
        id=spec.id,
        proxy_url=spec.proxy_url,
        secret_ref=spec.secret_ref,
        impersonator_secret_ref=spec.impersonator_secret_ref,
        kubernetes_version=spec.kubernetes_version,
        annotations=spec.annotations,
        managed_fields=spec.managed_fields,
        expects=expects,
    )


def wanted(value: Json, cluster: Cluster | None, status: Json) -> Spec:
    """The facts of a Cluster object of the right form."""
    spec = as_object(value.get("spec")) or {}
    metadata = as_object(value.get("metadata")) or {}
    zones = as_list(spec.get("zones")) or ([spec["zone"]] if spec.get("zone") else [])
    apis = _apis(as_list(status.get("apiEnablements")) or []) or (cluster.spec.apis if cluster else ())
    return Spec(
        labels={name: str(text) for name, text in (as_object(metadata.get("labels")) or {}).items()},
        provider=str(spec.get("provider", "")),
        region=str(spec.get("region", "")),
        zones=tuple(str(zone) for zone in zones),
        taints=tuple(_same_taint(_taint(item), cluster) for item in as_list(spec.get("taints")) or []),
        apis=apis or built_in_apis(),
        resource_models=tuple(_grade(item) for item in as_list(spec.get("resourceModels")) or []),
        sync_mode=enums.SyncMode(spec.get("syncMode", enums.SyncMode.PUSH)),
        api_endpoint=str(spec.get("apiEndpoint", "")),
        id=str(spec.get("id", "")),
        proxy_url=str(spec.get("proxyURL", "")),
        secret_ref=_reference(spec.get("secretRef")),
        impersonator_secret_ref=_reference(spec.get("impersonatorSecretRef")),
        kubernetes_version=str(
            status.get("kubernetesVersion") or (cluster.spec.kubernetes_version if cluster else "")
        ),
        annotations={
            name: str(text) for name, text in (as_object(metadata.get("annotations")) or {}).items()
        },
        managed_fields=owners.of_entries(as_list(metadata.get("managedFields")) or []),
    )


def _faults(target: wishes.Target, value: Json) -> list[Fault]:
    """What is wrong with a Cluster object, instants included."""
    faults = wishes.faults_of(target, wishes.encode(value))
    if faults:
        return faults
    for place, item in enumerate(as_list((as_object(value.get("spec")) or {}).get("taints")) or []):
        try:
            _taint(item)
        except ValueError as error:
            faults.append(Fault(f"spec.taints[{place}].timeAdded", str(error), "write 2024-05-25T09:49:51Z"))
    return faults


def _apis(enablements: Sequence[object]) -> tuple[clusters.ApiKind, ...]:
    found: list[clusters.ApiKind] = []
    for item in enablements:
        enablement = as_object(item) or {}
        resources = [as_object(entry) or {} for entry in as_list(enablement.get("resources")) or []]
        served = tuple(str(entry["kind"]) for entry in resources if entry.get("kind"))
        if served and isinstance(enablement.get("groupVersion"), str):
            found.append(clusters.ApiKind(group_version=str(enablement["groupVersion"]), kinds=served))
    return tuple(found)


def _taint(value: object) -> clusters.Taint:
    taint = as_object(value) or {}
    added = taint.get("timeAdded")
    return clusters.Taint(
        key=str(taint.get("key", "")),
        effect=str(taint.get("effect", "")),
        value=str(taint.get("value", "")),
        time_added_ms=times.from_text(added) if isinstance(added, str) else None,
    )


def _same_taint(taint: clusters.Taint, cluster: Cluster | None) -> clusters.Taint:
    """The taint that the cluster has already, where this is it: objects show its time in seconds, or leave it out."""
    for old in cluster.spec.taints if cluster else ():
        named = (old.key, old.value, old.effect) == (taint.key, taint.value, taint.effect)
        since_s = (taint.time_added_ms or 0) // 1000
        if named and since_s in (0, (old.time_added_ms or 0) // 1000):
            return old
    return taint


def _taint_document(taint: clusters.Taint) -> Json:
    found: Json = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        found["value"] = taint.value
    if taint.time_added_ms is not None:
        found["timeAdded"] = times.to_text(taint.time_added_ms)
    return found


def _reference(value: object) -> clusters.SecretRef | None:
    reference = as_object(value)
    if reference is None:
        return None
    return clusters.SecretRef(
        namespace=str(reference.get("namespace", "")), name=str(reference.get("name", ""))
    )


def _grade(value: object) -> clusters.ResourceGrade:
    grade = as_object(value) or {}
    ranges = [as_object(item) or {} for item in as_list(grade.get("ranges")) or []]
    return clusters.ResourceGrade(
        grade=int(str(grade.get("grade", 0))),
        ranges=tuple(
            clusters.Quantities(name=str(item["name"]), min=str(item["min"]), max=str(item.get("max", "")))
            for item in ranges
        ),
    )


def _named(name: str, labels: Json, spec: Json) -> Json:
    return {
        "apiVersion": kinds.CLUSTER_GROUP,
        "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def _matches(taint: clusters.Taint, gone: TaintKey) -> bool:
    return taint.key == gone.key and gone.effect in {"", taint.effect}
