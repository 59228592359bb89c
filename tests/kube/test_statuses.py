"""Status objects, as kubectl prints them."""

import msgspec

from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.patching import managed_fields, server_side_apply
from engine.kubeapi.rights.rbac import Act
from engine.kubeapi.schema import resources
from events import kube_objects
from events.json_values import Json
from events.validation import manifests
from events.validation.schema import Fault
from tests.builders.manifests import manifest


def _resource(group: str, version: str, plural: str) -> resources.Resource:
    resource = resources.control_plane().resource(group, version, plural)
    assert resource
    return resource


DEPLOYMENTS = _resource("apps", "v1", "deployments")
REBALANCERS = _resource("apps.karmada.io", "v1alpha1", "workloadrebalancers")
CONFIGMAPS = _resource("", "v1", "configmaps")


def test_not_found_status_is_complete() -> None:
    assert status_objects.not_found(DEPLOYMENTS, "x").body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "x" not found',
        "reason": "NotFound",
        "details": {"name": "x", "group": "apps", "kind": "deployments"},
        "code": 404,
    }


def test_core_group_has_no_name() -> None:
    error = status_objects.already_exists(CONFIGMAPS, "settings")
    assert error.message == 'configmaps "settings" already exists'
    assert error.details == {"name": "settings", "kind": "configmaps"}


def test_messages_equal_those_of_kubernetes() -> None:
    assert status_objects.conflict(DEPLOYMENTS, "x").message == (
        'Operation cannot be fulfilled on deployments.apps "x": the object has been modified; please apply your'
        " changes to the latest version and try again"
    )
    assert status_objects.forbidden_act(
        "me", Act(verb="get", group="apps", resource="deployments", namespace="shop", name="x")
    ).message == (
        'deployments.apps "x" is forbidden: User "me" cannot get resource "deployments" in API group "apps"'
        ' in the namespace "shop"'
    )
    assert status_objects.forbidden_act("me", Act(verb="list", resource="configmaps")).message == (
        'configmaps is forbidden: User "me" cannot list resource "configmaps" in API group "" at the cluster scope'
    )
    assert status_objects.strict_decoding(REBALANCERS, ['unknown field "spec.x"']).message == (
        'WorkloadRebalancer in version "v1alpha1" cannot be handled as a WorkloadRebalancer: strict decoding error:'
        ' unknown field "spec.x"'
    )
    assert status_objects.denied("propagationpolicy.karmada.io", "no").message == (
        'admission webhook "propagationpolicy.karmada.io" denied the request: no'
    )


def test_one_cause_is_plain_and_several_are_in_brackets() -> None:
    first, second = causes.required("spec.a"), causes.unsupported("spec.b", "x", ("y", "z"))
    assert status_objects.invalid(REBALANCERS, "one", [first]).message == (
        'WorkloadRebalancer.apps.karmada.io "one" is invalid: spec.a: Required value'
    )
    error = status_objects.invalid(REBALANCERS, "one", [first, second])
    assert error.message.endswith(
        '[spec.a: Required value, spec.b: Unsupported value: "x": supported values: "y", "z"]'
    )
    assert error.details == {
        "name": "one",
        "group": "apps.karmada.io",
        "kind": "WorkloadRebalancer",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
            {
                "reason": "FieldValueNotSupported",
                "message": 'Unsupported value: "x": supported values: "y", "z"',
                "field": "spec.b",
            },
        ],
    }


def test_validation_faults_become_causes() -> None:
    value: Json = manifest(
        "apps.karmada.io/v1alpha1",
        "WorkloadRebalancer",
        "one",
        spec={
            "workloads": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "ttlSecondsAfterFinished": "x",
        },
    )
    raw = msgspec.Raw(msgspec.json.encode(value))
    status_causes = causes.of_faults(manifests.object_faults(kube_objects.read_head(raw), raw), value)
    assert [cause.text for cause in status_causes] == [
        "spec.workloads[0].name: Required value",
        "spec.ttlSecondsAfterFinished: Invalid value: \"x\": is the text 'x', not a whole number",
    ]


def test_empty_list_is_a_missing_value() -> None:
    fault = Fault("spec.workloads", "has 0 items", "give at least 1")
    assert causes.of_faults([fault], {"spec": {"workloads": []}})[0].reason == "FieldValueRequired"
    assert causes.at({"a": [{"b": 7}]}, "a[0].b") == 7
    assert causes.at({"a": [{"b": 7}]}, "a[1].b") is None


def test_apply_conflicts_name_their_fields() -> None:
    conflict = server_side_apply.Conflict(
        path=("f:spec", "f:replicas"),
        manager=managed_fields.Manager(name="scaler", operation="Update", subresource="scale"),
        owned=managed_fields.Owned(fields=frozenset(), api_version="apps/v1", time="2026-01-01T00:00:00Z"),
    )
    error = status_objects.apply_conflict(server_side_apply.ApplyConflictError((conflict,)))
    assert error.code == 409
    words = 'conflict with "scaler" with subresource "scale" using apps/v1'
    cause = {"reason": "FieldManagerConflict", "message": words, "field": ".spec.replicas"}
    assert error.details == {"causes": [cause]}


def test_conflicts_below_a_long_name_take_bounded_memory() -> None:
    manager = managed_fields.Manager(name="scaler", operation="Apply")
    none = managed_fields.Owned(fields=frozenset(), api_version="apps/v1", time="2026-01-01T00:00:00Z")
    long = f"f:{'a' * 50_000}"
    conflicts = tuple(
        server_side_apply.Conflict(path=(long, f"f:b{index}"), manager=manager, owned=none)
        for index in range(2_000)
    )
    error = status_objects.apply_conflict(server_side_apply.ApplyConflictError(conflicts))
    assert error.message.startswith('Apply failed with 2000 conflicts: conflicts with "scaler":')
    assert len(error.message) < 2 * 1024 * 1024
    assert len((error.details or {}).get("causes", [])) == 21
