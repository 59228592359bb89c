"""The fields of a policy reach deciders by ``BindingClaimed``, and by the ``Claim`` that copies it."""

import msgspec

from engine.deciders import propagation
from engine.deciders.facts import KnownPolicy
from engine.domain.bindings import Claim
from engine.objects import policies
from events import codec, decisions, shapes
from events.json_values import Json, decoded

PREEMPTED = shapes.PolicyRef(kind="PropagationPolicy", name="old", namespace="default")
STATE: Json = {"rules": [{"aliasLabelName": "job", "jsonPath": "{.id}"}]}
NOT_COPIED = {"key", "preempted"}
"""Fields of the decision that say nothing about the policy."""


def manifest(*, dispatching: bool) -> bytes:
    """Return a policy whose fields have values other than the defaults."""
    spec: Json = {
        "placement": {"clusterAffinity": {}},
        "conflictResolution": "Overwrite",
        "preserveResourcesOnDeletion": True,
        "suspension": {"dispatching": dispatching, "dispatchingOnClusters": {"clusterNames": ["member1"]}},
        "failover": {
            "application": {"decisionConditions": {"tolerationSeconds": 5}},
            "cluster": {"purgeMode": "Directly", "statePreservation": STATE},
        },
        "propagateDeps": True,
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "urgent"},
        "schedulerName": "volcano",
    }
    head: Json = {
        "name": "web",
        "namespace": "default",
        "annotations": {"reballast.io/delete-last-copy": "true"},
    }
    return msgspec.json.encode({"kind": policies.PROPAGATION_POLICY, "metadata": head, "spec": spec})


def claimed(*, dispatching: bool) -> decisions.BindingClaimed:
    policy = policies.decode(manifest(dispatching=dispatching))
    return propagation.claimed("default/web-deployment", KnownPolicy(policy, 3, "p1"), PREEMPTED)


def test_decision_has_each_field_that_a_policy_sets() -> None:
    written = {
        field for value in (True, False) for field in decoded(codec.encode_data(claimed(dispatching=value)))
    }
    missing = set(decisions.BindingClaimed.__struct_encode_fields__) - written
    assert not missing, "set the field in propagation.claimed, and in the policy of this test"


def test_claim_copies_each_field() -> None:
    missing = {*decisions.BindingClaimed.__struct_fields__} - {*Claim.__struct_fields__, *NOT_COPIED}
    assert not missing, "add the field under the same name to Claim in engine/domain/bindings.py"
