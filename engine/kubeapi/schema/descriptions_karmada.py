"""Descriptions of the types and fields of the Karmada groups and Reballast's own, for ``kubectl explain``.

A type begins a line, its fields follow indented; continuation lines are indented once more. Types are named
as in ``types.karmada``.
"""

from typing import Final

DESCRIPTIONS: Final = """
policy.karmada.ApplicationFailover: When a workload that is unhealthy in a cluster leaves it.
  decisionConditions: How long it must have been unhealthy.
  purgeMode: How it leaves: Directly at once, Gracefully when what takes its place is healthy, Never.
  gracePeriodSeconds: How long a graceful eviction may wait for what takes its place; then it ends all the same.
  statePreservation: Values of its status that come along.
policy.karmada.ClusterAffinity: Which clusters are chosen: all that every given part agrees to.
  labelSelector: The labels that a cluster must have.
  fieldSelector: Which providers, regions and zones; operators are In and NotIn.
  clusterNames: Names of clusters; none means all.
  exclude: Names of clusters that are left out, whatever else chooses them.
policy.karmada.ClusterAffinityTerm: One of several groups of clusters, tried in order until one has room for all.
  affinityName: By which the binding's status names the group that was taken.
  overflowAffinities: Further clusters that are added, one after another, where the group alone has not enough room.
  labelSelector: The labels that a cluster must have.
  fieldSelector: Which providers, regions and zones; operators are In and NotIn.
  clusterNames: Names of clusters; none means all.
  exclude: Names of clusters that are left out, whatever else chooses them.
policy.karmada.ClusterFailover: How workloads leave a cluster that failed.
  purgeMode: Directly at once, or Gracefully when what takes their place is healthy.
  statePreservation: Values of their status that come along.
policy.karmada.ClusterPreferences: By which weights replicas are divided.
  staticWeightList: Weights by clusters; of several that fit a cluster the highest counts.
  dynamicWeight: AvailableReplicas weighs clusters by the room that they have, and comes before the list.
policy.karmada.ClusterQuotaStatus: The quota of one cluster.
  clusterName: The cluster.
  hard: How much there may be used.
  used: How much is used.
policy.karmada.ClusterTaintPolicy: Turns conditions of clusters into taints, and takes these away again.
  spec: Of which clusters, on which conditions, which taints.
policy.karmada.ClusterTaintPolicySpec: Of which clusters, on which conditions, which taints.
  targetClusters: The clusters that it is about; none given means all.
  addOnConditions: The taints come when all of these hold.
  removeOnConditions: The taints go when all of these hold; none given means that they stay.
  taints: The taints; NoExecute empties the cluster, but for what tolerates it.
policy.karmada.ClusterOverridePolicy: What differs from cluster to cluster, for objects of all namespaces.
  spec: Which objects, in which clusters, what.
policy.karmada.ClusterPropagationPolicy: Which objects of any namespace, or of none, go to which clusters.
  spec: What is chosen, and where it goes.
policy.karmada.CommandArgsOverrider: Changes the command, or the arguments, of a container.
  containerName: The container.
  operator: add puts the values behind what stands, remove takes them out.
  value: The words.
policy.karmada.DecisionConditions: When a workload counts as failed.
  tolerationSeconds: So long it must have been unhealthy without a break; 300 where nothing is said.
policy.karmada.Failover: When workloads leave the cluster in which they run, without anybody asking.
  application: Because they are unhealthy there.
  cluster: Because the cluster failed.
policy.karmada.FederatedResourceQuota: How much a namespace may use in all clusters; it decides nothing yet.
  spec: How much.
  status: How much is used.
policy.karmada.FederatedResourceQuotaSpec: How much a namespace may use.
  overall: In all clusters together.
  staticAssignments: In some clusters, each by itself.
policy.karmada.FederatedResourceQuotaStatus: How much a namespace uses.
  overall: How much it may use.
  overallUsed: How much it uses.
  aggregatedStatus: The same for each cluster.
policy.karmada.FieldOverrider: Changes a document that is embedded, as text, in a field.
  fieldPath: Where the text stands, as a JSON pointer: /data/config.yaml.
  json: Changes of a document in JSON.
  yaml: Changes of a document in YAML.
policy.karmada.FieldSelector: Chooses clusters by fields.
  matchExpressions: By provider, region or zone; all must hold.
policy.karmada.ImageOverrider: Changes a part of the images.
  predicate: Which image; without it those of all containers of the kinds whose pods are known.
  component: Registry, Repository or Tag.
  operator: add, replace or remove.
  value: What is added, or stands then.
policy.karmada.ImagePredicate: Which image.
  path: Where it stands, as a JSON pointer.
policy.karmada.JSONPatchOperation: One change of an embedded document.
  subPath: Where in the document, as a JSON pointer.
  operator: add, replace or remove.
  value: What is added, or stands then.
policy.karmada.LabelAnnotationOverrider: Changes labels, or annotations.
  operator: add those that are not there, replace the values of those that are, or remove them.
  value: Names and values; of those that are removed the names count.
policy.karmada.MatchCondition: A condition that a cluster may have.
  conditionType: Its type, such as Ready.
  operator: In or NotIn.
  statusValues: True, False, Unknown.
policy.karmada.Overriders: What is changed, in the order of these fields.
  plaintext: Any fields, as JSON patches.
  imageOverrider: Parts of images.
  commandOverrider: Commands of containers.
  argsOverrider: Arguments of containers.
  labelsOverrider: Labels.
  annotationsOverrider: Annotations.
  fieldOverrider: Documents that are embedded in fields.
policy.karmada.OverridePolicy: What differs from cluster to cluster, for objects of one namespace.
  spec: Which objects, in which clusters, what.
policy.karmada.OverrideSpec: Which objects differ, in which clusters, in what.
  resourceSelectors: The objects; none given means all.
  overrideRules: What is changed in which clusters, in this order.
  targetCluster: The older way to say the clusters; use overrideRules.
  overriders: The older way to say what is changed; use overrideRules.
policy.karmada.Placement: Where objects go, and how their replicas are divided.
  clusterAffinity: The clusters that may be chosen; none given means all. Not together with clusterAffinities.
  clusterAffinities: Groups of clusters, tried in order until one has room for all; a rebalancer begins with the
    first again.
  clusterTolerations: The taints of clusters that don't matter, or not for so many seconds.
  spreadConstraints: Over how many clusters, zones, regions or providers it is spread.
  replicaScheduling: How replicas are divided; without it every cluster gets all of them.
  workloadAffinity: With which other workloads it shares clusters, or does not.
policy.karmada.PlaintextOverrider: One change of an object, as a JSON patch has it.
  path: Where, as a JSON pointer: /spec/replicas.
  operator: add, replace or remove.
  value: What is added, or stands then.
policy.karmada.PolicyTaint: A taint of clusters.
  key: Its key.
  effect: NoSchedule lets nothing new in; NoExecute empties the cluster as well.
  value: Its value.
policy.karmada.PropagationPolicy: Which objects of its namespace go to which clusters.
  spec: What is chosen, and where it goes.
policy.karmada.PropagationSpec: What is chosen, and where it goes.
  resourceSelectors: The objects. Of several policies the one with the highest priority has an object, then the one
    that names it more exactly, then the first by name.
  association: The older name of propagateDeps.
  propagateDeps: Whether the ConfigMaps, Secrets, ServiceAccounts and claims to which a workload refers go along.
  placement: Where objects go.
  priority: Which of several policies that choose an object has it; 0 where nothing is said.
  preemption: Always takes objects from policies of lower priority, Never (the default) waits until they are free.
  dependentOverrides: Names of OverridePolicies that must be there before anything is placed.
  schedulerName: The scheduler; default-scheduler where nothing is said, and no other places anything here.
  failover: When workloads leave a cluster without anybody asking.
  conflictResolution: What becomes of an object that stands in a cluster already: Overwrite takes it over, Abort (the
    default) leaves it alone and says so.
  activationPreference: Lazy makes a changed policy wait for each object's own next change.
  suspension: What waits for now.
  preserveResourcesOnDeletion: Whether objects stay in the clusters when their template is deleted.
  schedulePriority: How important what is placed is, when there is not room for all.
policy.karmada.ReplicaSchedulingStrategy: How replicas are divided.
  replicaSchedulingType: Duplicated gives every cluster all replicas, Divided shares them out.
  replicaDivisionPreference: Aggregated into as few clusters as have room, or Weighted.
  weightPreference: The weights; without them all clusters weigh the same.
policy.karmada.ResourceSelector: Chooses objects.
  apiVersion: Their group and version, such as apps/v1.
  kind: Their kind.
  namespace: Their namespace; none given means the policy's own, or for cluster-wide policies any.
  name: Their name; with it the labels don't count.
  labelSelector: Labels that they have.
policy.karmada.RuleWithCluster: What is changed in some clusters.
  targetCluster: The clusters; none given means all.
  overriders: What is changed.
policy.karmada.SchedulePriority: How important what is placed is.
  priorityClassSource: KubePriorityClass takes the class that priorityClassName names, PodPriorityClass that of the
    pods; FederatedPriorityClass is not supported.
  priorityClassName: The PriorityClass.
policy.karmada.SpreadConstraint: Over how many of something clusters are chosen.
  spreadByField: cluster, zone, region or provider.
  spreadByLabel: A label of clusters instead.
  maxGroups: At most so many; none given means no limit.
  minGroups: At least so many, or nothing is placed; 1 where nothing is said.
policy.karmada.StatePreservation: Values that come along when a workload moves because something failed.
  rules: Which values, and by which labels what starts anew finds them.
policy.karmada.StatePreservationRule: One value.
  aliasLabelName: The label.
  jsonPath: Where it stands in the status: {.readyReplicas}.
policy.karmada.StaticClusterAssignment: How much a namespace may use in one cluster.
  clusterName: The cluster.
  hard: How much.
policy.karmada.StaticClusterWeight: The weight of some clusters.
  targetCluster: The clusters.
  weight: Their weight, 1 or more.
policy.karmada.SuspendClusters: Some clusters.
  clusterNames: Their names.
policy.karmada.Suspension: What waits until this is taken away.
  dispatching: Nothing that changes goes to any cluster.
  dispatchingOnClusters: Nothing that changes goes to these.
policy.karmada.WorkloadAffinity: With which other workloads one shares clusters, or does not.
  affinity: With these it does.
  antiAffinity: With these it does not.
policy.karmada.WorkloadAffinityTerm: Workloads that belong together.
  groupByLabelKey: The label whose value they have in common.
work.karmada.AggregatedStatusItem: How an object stands in one cluster.
  clusterName: The cluster.
  status: What its kind reports of itself there.
  applied: Whether the cluster has it as it is meant.
  appliedMessage: Why not.
  health: Healthy, Unhealthy or Unknown.
work.karmada.BindingPriority: How important a binding is.
  priority: The higher is decided first, and may take the room of the lower.
  preemptionPolicy: PreemptLowerPriority, or Never.
work.karmada.BindingSnapshot: A binding whose object needs this one.
  namespace: Its namespace.
  name: Its name.
  clusters: Where that one is placed.
work.karmada.BindingSuspension: What waits.
  dispatching: Nothing that changes goes to any cluster.
  dispatchingOnClusters: Nothing that changes goes to these.
  scheduling: Nothing is decided anew.
work.karmada.Component: A part of a workload that has replicas of its own.
  name: Its name.
  replicas: How many.
  replicaRequirements: What one of them needs.
work.karmada.ClusterResourceBinding: Where an object without a namespace is to be; made and decided here, not written.
  spec: What, and where.
  status: How it stands.
work.karmada.GracefulEvictionTask: A cluster that is being left.
  fromCluster: The cluster.
  purgeMode: Directly or Gracefully.
  replicas: How many were there.
  reason: Why: TaintUntolerated or ApplicationFailure.
  message: The same, for people.
  producer: Who began it.
  gracePeriodSeconds: How long it may wait for what takes its place.
  suppressDeletion: true keeps the cluster's copy until somebody says false; false ends the wait at once.
  preservedLabelState: Labels that come along, with values of the status.
  creationTimestamp: When it began.
  clustersBeforeFailover: Where all of it was then.
work.karmada.ManifestStatus: How one object of a work stands.
  identifier: The object.
  status: What its kind reports of itself.
  health: Healthy, Unhealthy or Unknown.
work.karmada.NodeClaim: On which nodes a replica can run.
  hardNodeAffinity: The nodes that it asks for.
  nodeSelector: The labels that they must have.
  tolerations: The taints of nodes that don't matter to it.
work.karmada.ObjectReference: An object.
  apiVersion: Its group and version.
  kind: Its kind.
  namespace: Its namespace.
  name: Its name.
  uid: Which one of those that had the name.
  resourceVersion: Which version of it was looked at.
work.karmada.ReplicaRequirements: What one replica needs.
  nodeClaim: On which nodes it can run.
  resourceRequest: Its requests: cpu, memory and the like.
  namespace: Whose quota it counts for.
  priorityClassName: The PriorityClass of its pods.
work.karmada.ResourceBinding: Where an object of a namespace is to be; made and decided here, not written.
  spec: What, and where.
  status: How it stands.
work.karmada.ResourceBindingSpec: What is placed, and where.
  resource: The object.
  propagateDeps: Whether what it refers to goes along.
  replicaRequirements: What one replica needs.
  replicas: How many it asks for.
  components: Its parts, where several have replicas of their own.
  clusters: Where it is to be, with how many replicas.
  placement: What its policy says.
  gracefulEvictionTasks: The clusters that are being left.
  requiredBy: Whose objects need this one, and where.
  schedulerName: Who decides.
  failover: When it leaves a cluster without anybody asking.
  conflictResolution: Overwrite or Abort.
  rescheduleTriggeredAt: When a rebalancer last asked for a fresh decision.
  suspension: What waits.
  preserveResourcesOnDeletion: Whether it stays in the clusters when its template is deleted.
  schedulePriority: How important it is.
work.karmada.ResourceBindingStatus: How a binding stands.
  schedulerObservedGeneration: The generation of the spec that was decided on.
  schedulerObservingAffinityName: Which of several groups of clusters was taken.
  lastScheduledTime: When it was last decided.
  conditions: Scheduled and FullyApplied.
  aggregatedStatus: How the object stands in each cluster.
work.karmada.ResourceIdentifier: An object of a work.
  ordinal: Its place in the work.
  group: Its group.
  version: Its version.
  kind: Its kind.
  resource: The name of its kind in addresses.
  namespace: Its namespace.
  name: Its name.
work.karmada.TargetCluster: A cluster, and its share.
  name: The cluster.
  replicas: How many replicas run there.
work.karmada.Work: What one cluster is to run of one object; in the namespace karmada-es-CLUSTER.
  spec: The object as the cluster gets it.
  status: How it stands there.
work.karmada.WorkSpec: The object as the cluster gets it.
  workload: The object.
  suspendDispatching: Whether changes wait.
  preserveResourcesOnDeletion: Whether it stays in the cluster when the work goes.
work.karmada.WorkStatus: How a work stands.
  conditions: Applied, and Dispatching where it waits.
  manifestStatuses: How each of its objects stands.
work.karmada.WorkloadTemplate: The objects of a work.
  manifests: The objects, whole.
cluster.karmada.APIEnablement: Kinds that a cluster serves.
  groupVersion: Their group and version.
  resources: The kinds.
cluster.karmada.APIResource: A kind that a cluster serves.
  name: Its name in addresses.
  kind: Its name.
cluster.karmada.AllocatableModeling: How many nodes have room of one grade.
  grade: The grade.
  count: How many.
cluster.karmada.Cluster: A cluster that workloads can be placed in.
  spec: What it is, and how it is reached.
  status: What was last heard of it.
cluster.karmada.ClusterSpec: What a cluster is, and how it is reached.
  id: Which one it is, whatever its name.
  syncMode: Push where somebody applies from here, Pull where an agent there fetches.
  apiEndpoint: The address of its API server.
  secretRef: The Secret with a token and the CA of that server.
  impersonatorSecretRef: The Secret with a token that may act for others.
  insecureSkipTLSVerification: Whether the server's certificate is not looked at.
  proxyURL: The proxy before it.
  proxyHeader: What that proxy is told.
  provider: Whose it is.
  region: In which region it is.
  zone: In which zone; use zones.
  zones: In which zones.
  taints: What keeps workloads out of it.
  resourceModels: Grades by which the room of its nodes is counted.
cluster.karmada.ClusterStatus: What was last heard of a cluster.
  kubernetesVersion: The version of its API server.
  apiEnablements: The kinds that it serves.
  conditions: Ready, and whether the list of its kinds is complete.
  nodeSummary: How many nodes it has.
  resourceSummary: How much room it has.
  remedyActions: What was asked for because of its conditions.
cluster.karmada.LocalSecretReference: A Secret.
  namespace: Its namespace.
  name: Its name.
cluster.karmada.NodeSummary: How many nodes a cluster has.
  totalNum: All.
  readyNum: Those that are ready.
cluster.karmada.ResourceModel: A grade of nodes.
  grade: Its number; the higher has more room.
  ranges: What a node of it has.
cluster.karmada.ResourceModelRange: How much of one resource the nodes of a grade have.
  name: cpu, memory and the like.
  min: At least so much.
  max: Less than so much.
cluster.karmada.ResourceSummary: How much room a cluster has.
  allocatable: What its nodes have for pods.
  allocating: What pods ask for that have no node yet.
  allocated: What pods ask for that have one.
  allocatableModelings: How many nodes have room of each grade.
apps.karmada.ObjectReference: A workload.
  apiVersion: Its group and version.
  kind: Its kind.
  namespace: Its namespace.
  name: Its name.
apps.karmada.ObservedWorkload: What came of asking for one workload.
  workload: The workload.
  result: Successful or Failed.
  reason: Why it failed.
apps.karmada.WorkloadRebalancer: Asks once for a fresh decision on workloads, as if they had never been placed.
  spec: Which workloads.
  status: What came of it.
apps.karmada.WorkloadRebalancerSpec: Which workloads are placed anew.
  workloads: The workloads; those that are added later are asked for then, and those of before not again.
  ttlSecondsAfterFinished: So long after its end the rebalancer is deleted; never where nothing is said.
apps.karmada.WorkloadRebalancerStatus: What came of a rebalancer.
  observedWorkloads: What came of each workload.
  observedGeneration: The generation of the spec that this is about.
  finishTime: When all of them were done.
config.reballast.InterpreterCondition: A condition that healthy objects have.
  type: Its type.
  status: Its status; True where nothing is said.
config.reballast.InterpreterDependency: Objects to which one of the kind refers.
  apiVersion: Their group and version.
  kind: Their kind.
  namesPath: Where their names stand.
config.reballast.InterpreterHealth: When an object of the kind is healthy.
  jsonPath: A value of its status.
  values: What it is then.
  condition: A condition that it has then.
config.reballast.InterpreterStatusField: How a value of the status comes together over all clusters.
  jsonPath: Where it stands.
  aggregate: How its values become one: Sum, Max, or First, which takes that of the first cluster by name.
config.reballast.InterpreterTarget: The kind.
  apiVersion: Its group and version.
  kind: Its name.
config.reballast.ReplicaInterpreter: What a custom kind means: its replicas, health, status and dependencies.
  spec: The kind, and where in its objects things stand.
config.reballast.ReplicaInterpreterSpec: The kind, and where in its objects things stand.
  target: The kind.
  replicasPath: Where the number of replicas stands.
  requestsPath: Where the requests of one replica stand.
  health: When an object is healthy.
  statusFields: How the status comes together over all clusters.
  dependencies: What objects refer to, and propagateDeps sends along.
  retainedFields: What the clusters' own controllers set, and is left as it is there.
"""
