"""Type table of the Karmada groups, from their CustomResourceDefinitions and the Cluster API.

Lists are atomic except where the definitions say otherwise. ``config.reballast.io`` is Reballast's own group.
The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package policy.karmada
ApplicationFailover = decisionConditions:DecisionConditions!, purgeMode:str, gracePeriodSeconds:int?,
  statePreservation:StatePreservation?
ClusterAffinity = labelSelector:meta.LabelSelector?, fieldSelector:FieldSelector?, clusterNames:[str],
  exclude:[str]
ClusterAffinityTerm = affinityName:str!, overflowAffinities:[ClusterAffinity],
  labelSelector:meta.LabelSelector?, fieldSelector:FieldSelector?, clusterNames:[str], exclude:[str]
ClusterFailover = purgeMode:str, statePreservation:StatePreservation?
ClusterPreferences = staticWeightList:[StaticClusterWeight], dynamicWeight:str
ClusterQuotaStatus = clusterName:str!, hard:{quantity}, used:{quantity}
ClusterTaintPolicy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:ClusterTaintPolicySpec!
ClusterTaintPolicySpec = targetClusters:ClusterAffinity?, addOnConditions:[MatchCondition],
  removeOnConditions:[MatchCondition], taints:[PolicyTaint]!
CommandArgsOverrider = containerName:str!, operator:str!, value:[str]
DecisionConditions = tolerationSeconds:int?
Failover = application:ApplicationFailover?, cluster:ClusterFailover?
FederatedResourceQuota = apiVersion:str, kind:str, metadata:meta.ObjectMeta,
  spec:FederatedResourceQuotaSpec!, status:FederatedResourceQuotaStatus
FederatedResourceQuotaSpec = overall:{quantity}!, staticAssignments:[StaticClusterAssignment]
FederatedResourceQuotaStatus = overall:{quantity}, overallUsed:{quantity},
  aggregatedStatus:[ClusterQuotaStatus]
FieldOverrider = fieldPath:str!, json:[JSONPatchOperation], yaml:[JSONPatchOperation]
FieldSelector = matchExpressions:[core.NodeSelectorRequirement]
ImageOverrider = predicate:ImagePredicate?, component:str!, operator:str!, value:str
ImagePredicate = path:str!
JSONPatchOperation = subPath:str!, operator:str!, value:any
LabelAnnotationOverrider = operator:str!, value:{str}
MatchCondition = conditionType:str!, operator:str!, statusValues:[str]!
Overriders = plaintext:[PlaintextOverrider], imageOverrider:[ImageOverrider],
  commandOverrider:[CommandArgsOverrider], argsOverrider:[CommandArgsOverrider],
  labelsOverrider:[LabelAnnotationOverrider], annotationsOverrider:[LabelAnnotationOverrider],
  fieldOverrider:[FieldOverrider]
OverridePolicy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:OverrideSpec!
OverrideSpec = resourceSelectors:[ResourceSelector], overrideRules:[RuleWithCluster],
  targetCluster:ClusterAffinity?, overriders:Overriders
Placement = clusterAffinity:ClusterAffinity?, clusterAffinities:[ClusterAffinityTerm],
  clusterTolerations:[core.Toleration], spreadConstraints:[SpreadConstraint],
  replicaScheduling:ReplicaSchedulingStrategy?, workloadAffinity:WorkloadAffinity?
PlaintextOverrider = path:str!, operator:str!, value:any
ClusterOverridePolicy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:OverrideSpec!
ClusterPropagationPolicy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:PropagationSpec!
PolicyTaint = key:str!, effect:str!, value:str
PropagationPolicy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:PropagationSpec!
PropagationSpec = resourceSelectors:[ResourceSelector]!, association:bool, propagateDeps:bool,
  placement:Placement, priority:int?, preemption:str, dependentOverrides:[str], schedulerName:str,
  failover:Failover?, conflictResolution:str, activationPreference:str, suspension:Suspension?,
  preserveResourcesOnDeletion:bool?, schedulePriority:SchedulePriority?
ReplicaSchedulingStrategy = replicaSchedulingType:str, replicaDivisionPreference:str,
  weightPreference:ClusterPreferences?
ResourceSelector = apiVersion:str!, kind:str!, namespace:str, name:str, labelSelector:meta.LabelSelector?
RuleWithCluster = targetCluster:ClusterAffinity?, overriders:Overriders!
SchedulePriority = priorityClassSource:str!, priorityClassName:str
SpreadConstraint = spreadByField:str, spreadByLabel:str, maxGroups:int, minGroups:int
StatePreservation = rules:[StatePreservationRule]!
StatePreservationRule = aliasLabelName:str!, jsonPath:str!
StaticClusterAssignment = clusterName:str!, hard:{quantity}!
StaticClusterWeight = targetCluster:ClusterAffinity!, weight:int!
SuspendClusters = clusterNames:[str]
Suspension = dispatching:bool?, dispatchingOnClusters:SuspendClusters?
WorkloadAffinity = affinity:WorkloadAffinityTerm?, antiAffinity:WorkloadAffinityTerm?
WorkloadAffinityTerm = groupByLabelKey:str!
package work.karmada
AggregatedStatusItem = clusterName:str!, status:any, applied:bool, appliedMessage:str, health:str
BindingSnapshot = namespace:str, name:str!, clusters:[TargetCluster]
BindingSuspension = dispatching:bool?, dispatchingOnClusters:policy.karmada.SuspendClusters?,
  scheduling:bool?
Component = name:str!, replicas:int!, replicaRequirements:ReplicaRequirements?
GracefulEvictionTask = fromCluster:str!, purgeMode:str, replicas:int?, reason:str!, message:str,
  producer:str!, gracePeriodSeconds:int?, suppressDeletion:bool?, preservedLabelState:{str},
  creationTimestamp:time?, clustersBeforeFailover:[str]
ManifestStatus = identifier:ResourceIdentifier!, status:any, health:str
NodeClaim = hardNodeAffinity:core.NodeSelector?, nodeSelector:{str}, tolerations:[core.Toleration]
ObjectReference = apiVersion:str!, kind:str!, namespace:str, name:str!, uid:str, resourceVersion:str
ReplicaRequirements = nodeClaim:NodeClaim?, resourceRequest:{quantity}, namespace:str,
  priorityClassName:str
ResourceBinding = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:ResourceBindingSpec!,
  status:ResourceBindingStatus
ResourceBindingSpec = resource:ObjectReference!, propagateDeps:bool,
  replicaRequirements:ReplicaRequirements?, replicas:int, components:[Component],
  clusters:[TargetCluster], placement:policy.karmada.Placement?,
  gracefulEvictionTasks:[GracefulEvictionTask], requiredBy:[BindingSnapshot], schedulerName:str,
  failover:policy.karmada.Failover?, conflictResolution:str, rescheduleTriggeredAt:time?,
  suspension:BindingSuspension?, preserveResourcesOnDeletion:bool?, schedulePriority:BindingPriority?
ResourceBindingStatus = schedulerObservedGeneration:int, schedulerObservingAffinityName:str,
  lastScheduledTime:time?, conditions:[meta.Condition], aggregatedStatus:[AggregatedStatusItem]
ClusterResourceBinding = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:ResourceBindingSpec!,
  status:ResourceBindingStatus
ResourceIdentifier = ordinal:int!, group:str, version:str!, kind:str!, resource:str!, namespace:str!,
  name:str!
BindingPriority = priority:int, preemptionPolicy:str
TargetCluster = name:str!, replicas:int
Work = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:WorkSpec, status:WorkStatus
WorkSpec = workload:WorkloadTemplate, suspendDispatching:bool?, preserveResourcesOnDeletion:bool?
WorkStatus = conditions:[meta.Condition], manifestStatuses:[ManifestStatus]
WorkloadTemplate = manifests:[any]
package cluster.karmada
APIEnablement = groupVersion:str!, resources:[APIResource]
APIResource = name:str!, kind:str!
AllocatableModeling = grade:int!, count:int!
Cluster = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:ClusterSpec!, status:ClusterStatus
ClusterSpec = id:str, syncMode:str!, apiEndpoint:str, secretRef:LocalSecretReference?,
  impersonatorSecretRef:LocalSecretReference?, insecureSkipTLSVerification:bool, proxyURL:str,
  proxyHeader:{str}, provider:str, region:str, zone:str, zones:[str], taints:[core.Taint],
  resourceModels:[ResourceModel]
ClusterStatus = kubernetesVersion:str, apiEnablements:[APIEnablement], conditions:[meta.Condition],
  nodeSummary:NodeSummary?, resourceSummary:ResourceSummary?, remedyActions:[str]
LocalSecretReference = namespace:str!, name:str!
NodeSummary = totalNum:int, readyNum:int
ResourceModel = grade:int!, ranges:[ResourceModelRange]!
ResourceModelRange = name:str!, min:quantity!, max:quantity!
ResourceSummary = allocatable:{quantity}, allocating:{quantity}, allocated:{quantity},
  allocatableModelings:[AllocatableModeling]
package apps.karmada
ObjectReference = apiVersion:str!, kind:str!, namespace:str, name:str!
ObservedWorkload = workload:ObjectReference!, result:str, reason:str
WorkloadRebalancer = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:WorkloadRebalancerSpec!,
  status:WorkloadRebalancerStatus
WorkloadRebalancerSpec = workloads:[ObjectReference]!, ttlSecondsAfterFinished:int?
WorkloadRebalancerStatus = observedWorkloads:[ObservedWorkload], observedGeneration:int, finishTime:time?
package config.karmada
CustomizationRules = retention:Script?, replicaResource:Script?, componentResource:Script?,
  replicaRevision:Script?, statusReflection:Script?, statusAggregation:Script?,
  healthInterpretation:Script?, dependencyInterpretation:Script?
CustomizationTarget = apiVersion:str!, kind:str!
ResourceInterpreterCustomization = apiVersion:str, kind:str, metadata:meta.ObjectMeta,
  spec:ResourceInterpreterCustomizationSpec!
ResourceInterpreterCustomizationSpec = target:CustomizationTarget!, customizations:CustomizationRules!
Script = luaScript:str
package autoscaling.karmada
CronFederatedHPA = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:CronFederatedHPASpec!,
  status:CronFederatedHPAStatus
CronFederatedHPARule = name:str!, schedule:str!, targetReplicas:int?, targetMinReplicas:int?,
  targetMaxReplicas:int?, suspend:bool?, timeZone:str?, successfulHistoryLimit:int?,
  failedHistoryLimit:int?
CronFederatedHPASpec = scaleTargetRef:autoscalingv2.CrossVersionObjectReference!,
  rules:[CronFederatedHPARule]!
CronFederatedHPAStatus = executionHistories:[ExecutionHistory]
ExecutionHistory = ruleName:str!, nextExecutionTime:time?, successfulExecutions:[SuccessfulExecution],
  failedExecutions:[FailedExecution]
FailedExecution = scheduleTime:time!, executionTime:time!, message:str!
FederatedHPA = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:FederatedHPASpec!,
  status:autoscalingv2.HorizontalPodAutoscalerStatus
FederatedHPASpec = scaleTargetRef:autoscalingv2.CrossVersionObjectReference!, minReplicas:int?,
  maxReplicas:int!, metrics:[autoscalingv2.MetricSpec],
  behavior:autoscalingv2.HorizontalPodAutoscalerBehavior?
SuccessfulExecution = scheduleTime:time!, executionTime:time!, appliedReplicas:int?,
  appliedMaxReplicas:int?, appliedMinReplicas:int?
package networking.karmada
ClusterSelector = name:str!
ExposurePort = name:str, port:int!
ExposureRange = clusterNames:[str]
MultiClusterIngress = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:networking.IngressSpec,
  status:any
MultiClusterService = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:MultiClusterServiceSpec!,
  status:core.ServiceStatus
MultiClusterServiceSpec = types:[str]!, ports:[ExposurePort], range:ExposureRange,
  serviceProvisionClusters:[str], serviceConsumptionClusters:[str], providerClusters:[ClusterSelector],
  consumerClusters:[ClusterSelector]
package remedy.karmada
ClusterAffinity = clusterNames:[str]
ClusterConditionRequirement = conditionType:str!, operator:str!, conditionStatus:str!
DecisionMatch = clusterConditionMatch:ClusterConditionRequirement?
Remedy = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:RemedySpec!
RemedySpec = clusterAffinity:ClusterAffinity?, decisionMatches:[DecisionMatch], actions:[str]
package config.reballast
InterpreterTarget = apiVersion:str!, kind:str!
ReplicaInterpreter = apiVersion:str, kind:str, metadata:meta.ObjectMeta, spec:ReplicaInterpreterSpec!
ReplicaInterpreterSpec = target:InterpreterTarget!, replicasPath:str, requestsPath:str,
  health:InterpreterHealth, statusFields:[InterpreterStatusField], dependencies:[InterpreterDependency],
  retainedFields:[str]
InterpreterHealth = jsonPath:str, values:[str], condition:InterpreterCondition
InterpreterCondition = type:str!, status:str
InterpreterStatusField = jsonPath:str!, aggregate:str
InterpreterDependency = apiVersion:str!, kind:str!, namesPath:str!
"""
