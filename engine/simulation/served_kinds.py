"""The kinds that a member serves: those of its configuration, and those of its CustomResourceDefinitions."""

from engine.simulation.state import MemberState, Unmanaged
from events import clusters, keys
from events.validation import known_kinds


def report(state: MemberState) -> clusters.ClusterApisReported | None:
    """Return a report of all served kinds; None if it would equal the last one."""
    if not state.definitions and state.reported_apis is None:
        return None
    apis = _served(state)
    previous = state.spec.apis if state.reported_apis is None else state.reported_apis
    return None if apis == previous else clusters.ClusterApisReported(name=state.spec.name, apis=apis)


def _served(state: MemberState) -> tuple[clusters.ApiKind, ...]:
    resources = [resource for key in sorted(state.definitions) for resource in state.definitions[key]]
    if not resources:
        return state.spec.apis
    names = {
        api.group_version: {kind: known_kinds.plural_of(api.group_version, kind) for kind in api.kinds}
        for api in state.spec.apis
    }
    for resource in resources:
        names.setdefault(resource.api_version, {}).setdefault(resource.kind, resource.plural)
    return tuple(_api(group, names[group]) for group in sorted(names))


def _api(group: str, names: dict[str, str]) -> clusters.ApiKind:
    """Return the kinds of a group; their plurals (``names``, by kind) are omitted if all follow from the kinds."""
    kinds = tuple(sorted(names))
    derived = all(names[kind] == known_kinds.plural_of(group, kind) for kind in kinds)
    return clusters.ApiKind(
        group_version=group, kinds=kinds, names=() if derived else tuple(names[kind] for kind in kinds)
    )


def objects(state: MemberState, key: str) -> list[Unmanaged]:
    """Return the objects that clients wrote of the kinds that a definition with this key serves."""
    kinds = {(kind.group, kind.kind) for kind in state.definitions.get(key, ())}
    if not kinds:
        return []
    return [
        item
        for item in state.unmanaged.values()
        if (keys.group_of(item.ref.api_version), item.ref.kind) in kinds
    ]
