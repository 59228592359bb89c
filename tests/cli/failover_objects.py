"""Objects of the tests of failover: workloads with policies, taints of failed clusters, a rebalancer."""

from typing import Final

CONFIRMED_S: Final = 180.0
"""A condition counts after 30 seconds; a busy machine takes longer."""

WEB: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
"""

FAILOVER: Final = """
  propagateDeps: true
  failover:
    application: {decisionConditions: {tolerationSeconds: 2}, purgeMode: Directly}
"""

STATEFUL: Final = """
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: flink
  namespace: default
  annotations: {simulation.reballast.io/status: '{"jobStatus": {"jobID": "a1"}}'}
spec:
  replicas: 1
  selector: {matchLabels: {app: flink}}
  template:
    metadata: {labels: {app: flink}}
    spec: {containers: [{name: main, image: flink, resources: {requests: {cpu: 1M}}}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: flink, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet, name: flink}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
  propagateDeps: true
  failover:
    application:
      decisionConditions: {tolerationSeconds: 2}
      purgeMode: Directly
      statePreservation: {rules: [{aliasLabelName: example.com/job, jsonPath: "{.jobStatus.jobID}"}]}
"""

TAINTS: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: not-ready}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False", "Unknown"]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]
  taints: [{key: not-ready, effect: NoExecute}]
"""

REBALANCER: Final = """
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: spread}
spec:
  workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}]
"""
