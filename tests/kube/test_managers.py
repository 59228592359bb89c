"""Server-side apply: ownership, removal of fields, and conflicts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.patching import managed_fields, server_side_apply
from engine.kubeapi.patching.managed_fields import Manager
from engine.kubeapi.schema.types import parsing
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

DEPLOYMENT = parsing.named("apps.Deployment")
NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T13:00:00Z"


def _write(
    name: str, operation: str = "Apply", time: str = NOON, subresource: str = ""
) -> server_side_apply.Write:
    manager = Manager(
        name=name, operation="Apply" if operation == "Apply" else "Update", subresource=subresource
    )
    roots = (("f:spec",), ("f:metadata", "f:labels")) if subresource else (("f:status",),)
    return server_side_apply.Write(manager=manager, api_version="apps/v1", time=time, untouched=roots)


def _deployment(**spec: object) -> KubeObject:
    return KubeObject(manifest("apps/v1", "Deployment", "web", spec=spec))


def _apply(
    live: KubeObject | None, desired: KubeObject, name: str, *, force: bool = False, time: str = NOON
) -> KubeObject:
    return server_side_apply.applied(live, desired, DEPLOYMENT, _write(name, time=time), force=force)


def _spec(value: KubeObject) -> Json:
    return value.object_at("spec")


def _owned(value: KubeObject, name: str) -> object:
    for entry in list_at(value.metadata.get("managedFields")):
        fields = object_at(entry)
        if fields["manager"] == name:
            return fields["fieldsV1"]
    return None


def _containers(**images: str) -> Json:
    return {"spec": {"containers": [{"name": name, "image": image} for name, image in images.items()]}}


def test_applier_owns_the_applied_fields() -> None:
    live = _apply(None, _deployment(replicas=1, template=_containers(web="nginx")), "me")
    keys = 'k:{"name":"web"}'
    containers: Json = {keys: {".": {}, "f:name": {}, "f:image": {}}}
    assert live.metadata.get("managedFields") == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": containers}}}
            },
        }
    ]


def test_field_is_removed_with_its_last_owner() -> None:
    live = _apply(None, _deployment(replicas=1, paused=True), "me")
    live = _apply(live, _deployment(paused=True), "you")
    live = _apply(live, _deployment(replicas=1), "me")
    assert _spec(live) == {"replicas": 1, "paused": True}
    live = _apply(live, _deployment(minReadySeconds=1), "you")
    assert _spec(live) == {"replicas": 1, "minReadySeconds": 1}


def test_change_of_an_owned_field_is_a_conflict() -> None:
    live = server_side_apply.updated(
        None, _deployment(replicas=1), DEPLOYMENT, _write("kubectl-create", "Update")
    )
    with pytest.raises(server_side_apply.ApplyConflictError) as caught:
        _apply(live, _deployment(replicas=2), "me")
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-create" using apps/v1: .spec.replicas'
    )
    forced = _apply(live, _deployment(replicas=2), "me", force=True)
    assert _spec(forced) == {"replicas": 2}
    assert _owned(forced, "kubectl-create") is None


def test_creator_owns_all_new_fields() -> None:
    desired = _deployment(
        replicas=1, template=_containers(web="nginx"), strategy={"rollingUpdate": {"maxSurge": 1}}
    )
    desired = desired.with_metadata({"labels": {"a": "b"}})
    live = server_side_apply.updated(None, desired, DEPLOYMENT, _write("kubectl-create", "Update"))
    containers: Json = {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}
    assert _owned(live, "kubectl-create") == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
            "f:template": {"f:spec": {"f:containers": containers}},
        },
    }


def test_conflicts_are_listed_by_owner() -> None:
    live = _apply(None, _deployment(replicas=1, template=_containers(web="nginx")), "a")
    with pytest.raises(server_side_apply.ApplyConflictError) as caught:
        _apply(live, _deployment(replicas=2, template=_containers(web="redis")), "b")
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflicts with "a":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="web"].image'
    )


def test_equal_values_may_have_two_owners() -> None:
    live = _apply(_apply(None, _deployment(replicas=1), "a"), _deployment(replicas=1), "b")
    assert _owned(live, "a") == _owned(live, "b") == {"f:spec": {"f:replicas": {}}}


def test_update_takes_ownership_of_changed_fields() -> None:
    live = _apply(None, _deployment(replicas=1, paused=True), "me")
    live = server_side_apply.updated(
        live,
        live.with_fields({"spec": {"replicas": 5, "paused": True}}),
        DEPLOYMENT,
        _write("scaler", "Update", LATER),
    )
    assert _owned(live, "scaler") == {"f:spec": {"f:replicas": {}}}
    assert _owned(live, "me") == {"f:spec": {"f:paused": {}}}


def test_untracked_fields_belong_to_before_first_apply() -> None:
    with pytest.raises(server_side_apply.ApplyConflictError, match="before-first-apply"):
        _apply(_deployment(replicas=1), _deployment(replicas=2), "me")
    live = _apply(_deployment(replicas=1), _deployment(paused=True), "me")
    assert _owned(live, "before-first-apply") == {"f:spec": {"f:replicas": {}}}


def test_repeated_apply_changes_nothing() -> None:
    desired = _deployment(replicas=1, template=_containers(web="nginx", side="redis"))
    live = _apply(None, desired, "me")
    assert _apply(live, desired, "me", time=LATER) is live


def test_status_is_ignored_by_an_apply_to_the_object() -> None:
    live = _apply(None, _deployment(replicas=1).with_fields({"status": {"replicas": 7}}), "me")
    assert "status" not in live.document
    assert _owned(live, "me") == {"f:spec": {"f:replicas": {}}}
    reported = server_side_apply.updated(
        live,
        live.with_fields({"status": {"replicas": 1}}),
        DEPLOYMENT,
        _write("agent", "Update", subresource="status"),
    )
    assert _owned(reported, "agent") == {"f:status": {".": {}, "f:replicas": {}}}


def test_items_keep_their_order_and_new_ones_follow() -> None:
    live = _apply(None, _deployment(template=_containers(a="1", b="1", c="1")), "me")
    other = _apply(live, _deployment(template=_containers(c="1", z="1", a="1")), "you")
    spec = object_at(_spec(other), "template", "spec")
    names = [object_at(item)["name"] for item in list_at(spec, "containers")]
    assert names == ["b", "c", "z", "a"]


def test_ports_are_distinguished_by_number_and_protocol() -> None:
    def web(*ports: Json) -> KubeObject:
        return _deployment(template={"spec": {"containers": [{"name": "web", "ports": list(ports)}]}})

    live = _apply(None, web({"containerPort": 53}), "me")
    live = _apply(live, web({"containerPort": 53, "protocol": "UDP"}), "you")
    spec = object_at(_spec(live), "template", "spec")
    container = object_at(list_at(spec, "containers")[0])
    assert container["ports"] == [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]


def test_labels_are_merged_and_selectors_are_atomic() -> None:
    desired = _deployment(selector={"matchLabels": {"a": "b"}})
    desired = desired.with_metadata({"labels": {"a": "b"}, "finalizers": ["x/y"]})
    assert _owned(_apply(None, desired, "me"), "me") == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"x/y"': {}}},
        "f:spec": {"f:selector": {}},
    }


MISFITS: list[tuple[Json, str]] = [
    ({"spec": {"colour": 1}}, ".spec.colour: field not declared in schema"),
    ({"spec": {"template": _containers(web="1") | {"spec": {"containers": [{}, {}]}}}}, "duplicate"),
    ({"spec": {"template": 7}}, ".spec.template: expected map"),
    ({"spec": {"replicas": {}}}, ".spec.replicas: expected numeric"),
    ({"metadata": {"managedFields": [{}]}}, "must be nil"),
]


@pytest.mark.parametrize(("desired", "words"), MISFITS)
def test_invalid_object_is_not_applied(desired: Json, words: str) -> None:
    with pytest.raises(server_side_apply.ApplyError, match=words):
        _apply(None, KubeObject(desired), "me")


def test_client_may_transfer_ownership() -> None:
    live = server_side_apply.updated(None, _deployment(replicas=1), DEPLOYMENT, _write("old", "Update"))
    entries = [{**object_at(e), "manager": "new"} for e in list_at(live.metadata.get("managedFields"))]
    moved = server_side_apply.updated(
        live, managed_fields.replaced(live, entries), DEPLOYMENT, _write("x", "Update")
    )
    assert _owned(moved, "new") == {"f:spec": {"f:replicas": {}}}
    assert _owned(moved, "old") is None
    forgotten = server_side_apply.updated(
        live, managed_fields.replaced(live, [{}]), DEPLOYMENT, _write("x", "Update")
    )
    assert forgotten.metadata.get("managedFields") is None


def test_oldest_of_many_updaters_share_an_entry() -> None:
    live: KubeObject | None = None
    for number in range(14):
        new = _deployment(**{**(_spec(live) if live else {}), "replicas": number})
        new = new.with_metadata({"labels": {**(live or new).labels, f"l{number}": "x"}})
        live = server_side_apply.updated(live, new, DEPLOYMENT, _write(f"m{number:02}", "Update"))
    assert live
    names = [entry["manager"] for entry in managed_fields.entries(live)]
    assert sorted(map(str, names)) == ["ancient-changes", *(f"m{number:02}" for number in range(5, 14))]


NOTHING = KubeObject(manifest("apps/v1", "Deployment", "web"))
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "replicas": st.integers(0, 3),
    "paused": st.booleans(),
    "minReadySeconds": st.integers(0, 3),
    "revisionHistoryLimit": st.integers(0, 3),
    "template": st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), min_size=1).map(
        lambda images: _containers(**images)
    ),
}
WISHES = st.fixed_dictionaries({}, optional=FIELDS).filter(bool)


@given(WISHES, WISHES)
def test_managers_of_disjoint_fields_never_conflict(first: Json, second: Json) -> None:
    others = {name: value for name, value in second.items() if name not in first}
    second_wish = _deployment(**others) if others else NOTHING
    live = _apply(_apply(None, _deployment(**first), "a"), second_wish, "b")
    assert _spec(live) == {**first, **others}
    live = _apply(live, NOTHING, "a")
    assert _spec(live) == others


@given(st.lists(st.tuples(st.sampled_from("abc"), WISHES), min_size=1, max_size=6))
def test_last_forced_values_are_set_and_a_second_apply_changes_nothing(
    writes: list[tuple[str, Json]],
) -> None:
    live: KubeObject | None = None
    for name, wish in writes:
        live = _apply(live, _deployment(**wish), name, force=True)
        assert _apply(live, _deployment(**wish), name, time=LATER) is live
    for name in "abc":
        live = _apply(live, NOTHING, name)
    assert live == NOTHING


def test_ownership_of_the_whole_object_is_ignored() -> None:
    managed: list[Json] = [
        {"manager": "me", "operation": "Apply", "fieldsV1": {".": {}, "f:spec": {"f:replicas": {}}}}
    ]
    live = _deployment(replicas=1)
    new = live.with_metadata({"managedFields": managed})
    (entry,) = server_side_apply.owners_after_update(live, new, DEPLOYMENT, _write("you", "Update"))
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
