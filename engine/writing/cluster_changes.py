"""Changes of a Cluster object as events.

A change of only taints, only labels or only the location becomes a small event (tainted, untainted, labelled,
described); any other change writes the whole cluster.
"""

from collections.abc import Sequence

import msgspec

from engine.domain.clusters import Spec, edited
from engine.kubeapi.values import quantity
from events import clusters, enums, shapes, times
from events.json_values import as_list, as_object, list_at, object_at, objects_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections.clusters import Cluster
from projections.documents import field_owners
from projections.documents.clusters import FINALIZER, plurals


def leaving(cluster: Cluster) -> clusters.ClusterLeaving:
    """The event that starts a cluster's departure; it takes effect only if the cluster's version is unchanged."""
    return clusters.ClusterLeaving(name=cluster.name, expects=cluster.head.version)


def left_event(cluster: Cluster) -> clusters.ClusterLeft:
    """The event that ends a cluster's membership; it takes effect only if the cluster's version is unchanged."""
    return clusters.ClusterLeft(name=cluster.name, uid=cluster.head.uid, expects=cluster.head.version)


def is_released(cluster: Cluster, value: KubeObject) -> bool:
    """Whether a client removed the finalizer of a leaving cluster, so that it leaves without further waiting."""
    return cluster.leaving_ms is not None and FINALIZER not in value.list_at("metadata", "finalizers")


def built_in_apis() -> tuple[clusters.ApiKind, ...]:
    """Kubernetes' built-in API kinds, which a cluster is assumed to serve until it reports its own."""
    groups: dict[str, list[str]] = {}
    for kind in kinds.KINDS:
        if kind.route in {"template", "namespace"}:
            groups.setdefault(kind.api_version, []).append(kind.kind)
    return tuple(
        clusters.ApiKind(group_version=group, kinds=tuple(sorted(names)))
        for group, names in sorted(groups.items())
    )


def events_of(name: str, cluster: Cluster | None, spec: Spec) -> tuple[shapes.Event, ...]:
    """Return the events that change a cluster to this spec; none if it has this spec already.

    These are small events if they suffice, else one with the whole cluster. The same change gives the same events,
    whichever client makes it.
    """
    if cluster is None:
        return (_joined(name, 0, spec),)
    old = cluster.spec
    changes = {field for field in Spec.__struct_fields__ if getattr(old, field) != getattr(spec, field)}
    events = _small_events(cluster, spec, changes - {"managed_fields"})
    folded = old
    # Small events must add up to exactly this spec; if not, write the whole cluster.
    for event in events:
        folded = edited(folded, event, 0)
    if folded != _timed(spec):
        return (_joined(name, cluster.head.version, spec),)
    return tuple(events)


def _joined(name: str, expects: int, spec: Spec) -> clusters.ClusterJoined:
    return clusters.ClusterJoined(name=name, expects=expects, **msgspec.structs.asdict(spec))


def _small_events(cluster: Cluster, facts: Spec, changes: set[str]) -> list[shapes.Event]:
    """Small events for changes of these fields; changes that no such event expresses are left out."""
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
    before, after = cluster.spec.taints, facts.taints
    kept = {(taint.key, taint.effect) for taint in after}
    removed = [taint for taint in before if (taint.key, taint.effect) not in kept]
    untainted = [
        clusters.ClusterUntainted(name=name, key=taint.key, effect=taint.effect, managed_fields=owned)
        for taint in removed
    ]
    tainted = [
        clusters.ClusterTainted(name=name, taint=taint, managed_fields=owned)
        for taint in after
        if taint not in before
    ]
    events: list[shapes.Event] = [*untainted, *tainted]
    if len(events) == 1:
        return [msgspec.structs.replace(events[0], expects=expects)]
    # If there are several events, none expects a version: the first event changes the version, so the fold would
    # refuse the others as late. Each event changes another taint, so all stay valid if another client writes in
    # between.
    return events


def _timed(spec: Spec) -> Spec:
    """Return the spec as the fold of an event at time 0 makes it: a taint without a time gets the time 0."""
    replace = msgspec.structs.replace
    taints = (replace(taint, time_added_ms=taint.time_added_ms or 0) for taint in spec.taints)
    return replace(spec, taints=tuple(taints))


def spec_of(value: KubeObject, cluster: Cluster | None, reported: KubeObject | None) -> Spec:
    """The spec of a validated Cluster object, with the API kinds and Kubernetes version in the status of ``reported``.

    If that status has no kinds or no version, those of ``cluster`` are used.
    """
    spec = value.object_at("spec")
    status = {} if reported is None else reported.object_at("status")
    zones = as_list(spec.get("zones")) or ([spec["zone"]] if spec.get("zone") else [])
    apis = _apis(list_at(status, "apiEnablements")) or (cluster.spec.apis if cluster else ())
    return Spec(
        labels={name: str(text) for name, text in value.labels.items()},
        provider=str(spec.get("provider", "")),
        region=str(spec.get("region", "")),
        zones=tuple(str(zone) for zone in zones),
        taints=tuple(_same_taint(_taint(item), cluster) for item in list_at(spec, "taints")),
        apis=apis or built_in_apis(),
        resource_models=_models(list_at(spec, "resourceModels"), cluster),
        sync_mode=enums.SyncMode(spec.get("syncMode", enums.SyncMode.PUSH)),
        api_endpoint=str(spec.get("apiEndpoint", "")),
        id=_id(str(spec.get("id", "")), cluster),
        proxy_url=str(spec.get("proxyURL", "")),
        secret_ref=_reference(spec.get("secretRef")),
        impersonator_secret_ref=_reference(spec.get("impersonatorSecretRef")),
        kubernetes_version=str(
            status.get("kubernetesVersion") or (cluster.spec.kubernetes_version if cluster else "")
        ),
        annotations={name: str(text) for name, text in value.annotations.items()},
        managed_fields=field_owners.of_entries(value.list_at("metadata", "managedFields")),
    )


def _apis(enablements: Sequence[object]) -> tuple[clusters.ApiKind, ...]:
    apis: list[clusters.ApiKind] = []
    for item in enablements:
        enablement = object_at(item)
        resources = objects_at(enablement, "resources")
        served = [entry for entry in resources if entry.get("kind")]
        if served and isinstance(enablement.get("groupVersion"), str):
            api = clusters.ApiKind(
                group_version=str(enablement["groupVersion"]),
                kinds=tuple(str(entry["kind"]) for entry in served),
            )
            derived = plurals(api)
            names = tuple(str(entry.get("name") or name) for entry, name in zip(served, derived, strict=True))
            # Do not record names that equal the plurals derived from the kinds, so that a spec with these names
            # equals a spec without names.
            apis.append(msgspec.structs.replace(api, names=() if names == derived else names))
    return tuple(apis)


def _taint(value: object) -> clusters.Taint:
    taint = object_at(value)
    added = taint.get("timeAdded")
    return clusters.Taint(
        key=str(taint.get("key", "")),
        effect=str(taint.get("effect", "")),
        value=str(taint.get("value", "")),
        time_added_ms=times.from_text(added) if isinstance(added, str) else None,
    )


def _same_taint(taint: clusters.Taint, cluster: Cluster | None) -> clusters.Taint:
    """Return the cluster's recorded taint if it equals ``taint``, else ``taint``.

    Manifests show the time of a taint in whole seconds or omit it, so a missing time and fractions of a second are
    ignored. Otherwise each apply of a manifest would change the time.
    """
    for old in cluster.spec.taints if cluster else ():
        named = (old.key, old.value, old.effect) == (taint.key, taint.value, taint.effect)
        since_s = (taint.time_added_ms or 0) // 1000
        if named and since_s in (0, (old.time_added_ms or 0) // 1000):
            return old
    return taint


def _id(text: str, cluster: Cluster | None) -> str:
    """Return the id to record for a cluster.

    Reads show the uid as the id of a cluster that has no id. If a client writes the uid back, the id stays empty.
    """
    is_shown = cluster is not None and not cluster.spec.id and text == cluster.head.uid
    return "" if is_shown else text


def _reference(value: object) -> clusters.SecretRef | None:
    reference = as_object(value)
    if reference is None:
        return None
    return clusters.SecretRef(
        namespace=str(reference.get("namespace", "")), name=str(reference.get("name", ""))
    )


def _models(grades: Sequence[object], cluster: Cluster | None) -> tuple[clusters.ResourceGrade, ...]:
    """Return the resource models to record for ``grades``, which a client wrote.

    If they equal the models that reads show, return those of ``cluster``, so that shown defaults are not recorded.
    """
    models = tuple(_grade(item) for item in grades)
    return cluster.spec.resource_models if cluster and models == cluster.spec.models_in_use else models


def _grade(value: object) -> clusters.ResourceGrade:
    grade = object_at(value)
    ranges = objects_at(grade, "ranges")
    return clusters.ResourceGrade(
        grade=int(str(grade.get("grade", 0))),
        ranges=tuple(
            clusters.Quantities(
                name=str(item["name"]),
                min=canonical_quantity(item["min"]),
                max=canonical_quantity(item.get("max", "")),
            )
            for item in ranges
        ),
    )


def canonical_quantity(amount: object) -> str:
    """A quantity as Kubernetes writes it; a malformed one is returned unchanged, and the validation refuses it."""
    try:
        return quantity.canonical(str(amount))
    except quantity.QuantityError:
        return str(amount)
