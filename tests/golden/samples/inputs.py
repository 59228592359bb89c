"""Samples of the topics ``specs``, ``policies`` and ``health``."""

from typing import Final

from events import enums, health, policies, shapes, specs
from tests.golden.samples.values import KEY, OWNER, POLICY, TEMPLATE, raw_json

_DEPLOYMENT: Final = raw_json(
    '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"foo","namespace":"default",'
    '"labels":{"app":"foo"}},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"foo",'
    '"image":"nginx","resources":{"limits":{"cpu":"10m","memory":"10Mi"}}}]}}}}'
)
_PROPAGATION: Final = raw_json(
    '{"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy","metadata":{"name":'
    '"nginx-propagation","namespace":"default"},"spec":{"resourceSelectors":[{"apiVersion":"apps/v1",'
    '"kind":"Deployment","name":"foo"}],"placement":{"clusterAffinity":{"clusterNames":["member1"]}}}}'
)
_REBALANCER: Final = raw_json(
    '{"apiVersion":"apps.karmada.io/v1alpha1","kind":"WorkloadRebalancer","metadata":{"name":"demo"},"spec":'
    '{"workloads":[{"apiVersion":"apps/v1","kind":"Deployment","name":"foo","namespace":"default"}]}}'
)
_NAMESPACE: Final = raw_json('{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}')
_INTERPRETER: Final = raw_json(
    '{"apiVersion":"config.reballast.io/v1alpha1","kind":"ReplicaInterpreter","metadata":{"name":"kafkas"},'
    '"spec":{"target":{"apiVersion":"example.io/v1","kind":"Kafka"},"replicasPath":"spec.size"}}'
)
_QUOTA: Final = raw_json(
    '{"apiVersion":"policy.karmada.io/v1alpha1","kind":"FederatedResourceQuota","metadata":{"name":"foo",'
    '"namespace":"default"},"spec":{"overall":{"cpu":"8"}}}'
)
_KEPT: Final = shapes.WorkloadRef(api_version="v1", kind="FederatedResourceQuota", name="foo", namespace="a")
SPECS: Final[tuple[shapes.Event, ...]] = (
    specs.TemplateApplied(manifest=_DEPLOYMENT, expects=0),
    specs.TemplateDeleted(template=TEMPLATE, expects=1, orphans=True),
    specs.RebalancerApplied(manifest=_REBALANCER, expects=0),
    specs.RebalancerDeleted(name="demo", expects=1),
    specs.TemplateStatusWritten(
        template=TEMPLATE, status={"replicas": raw_json("3")}, managed_fields=(OWNER,), expects=1
    ),
    specs.SuspensionWritten(template=TEMPLATE, scheduling=True, dispatching=True),
    specs.DeletionAllowed(template=TEMPLATE, cluster="member1"),
)
POLICIES: Final[tuple[shapes.Event, ...]] = (
    policies.PolicyApplied(manifest=_PROPAGATION, expects=0),
    policies.PolicyDeleted(policy=POLICY, expects=1),
    policies.NamespaceApplied(manifest=_NAMESPACE, expects=0),
    policies.NamespaceDeleted(name="shop", expects=1),
    policies.InterpreterApplied(manifest=_INTERPRETER, expects=0),
    policies.InterpreterDeleted(name="kafkas", expects=1),
    policies.ConfigurationApplied(manifest=_QUOTA, expects=0),
    policies.ConfigurationDeleted(object=_KEPT, expects=1),
    policies.ConfigurationStatusWritten(
        object=_KEPT, status={"overall": raw_json('{"cpu":"8"}')}, managed_fields=(OWNER,), expects=1
    ),
    policies.PriorityClassDeclared(
        name="urgent", value=1_000, global_default=True, preemption_policy=enums.PreemptionPolicy.NEVER
    ),
    policies.PriorityClassGone(name="urgent"),
)
HEALTH: Final[tuple[shapes.Event, ...]] = (
    health.WorkloadReported(
        cluster="member1",
        key=KEY,
        term=2,
        step=7,
        replicas=3,
        updated=3,
        ready=2,
        available=2,
        healthy=False,
        fault="OverridePolicy default/eu: plaintext: operation 0: there is no /spec/size",
        values={"{.jobStatus.jobID}": "a1"},
        generation=3,
        observed_generation=2,
        status='{"phase":"Running"}',
    ),
    health.WorkloadGone(cluster="member1", key=KEY, term=2, step=8),
)
