"""Type table of apps/v1, batch/v1, autoscaling and policy/v1, from the API of Kubernetes 1.36.

The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package apps
ControllerRevision = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, data:2:any, revision:3:int64!
DaemonSet = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:DaemonSetSpec,
  status:3:DaemonSetStatus
DaemonSetCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str, message:5:str
DaemonSetSpec = selector:1:meta.LabelSelector?, template:2:core.PodTemplateSpec!,
  updateStrategy:3:DaemonSetUpdateStrategy, minReadySeconds:4:int32, revisionHistoryLimit:6:int32?
DaemonSetStatus = currentNumberScheduled:1:int32!, numberMisscheduled:2:int32!, desiredNumberScheduled:3:int32!,
  numberReady:4:int32!, observedGeneration:5:int64, updatedNumberScheduled:6:int32, numberAvailable:7:int32,
  numberUnavailable:8:int32, collisionCount:9:int32?, conditions:10:[DaemonSetCondition/type~type]
DaemonSetUpdateStrategy = type:1:str, rollingUpdate:2:RollingUpdateDaemonSet?
Deployment = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:DeploymentSpec,
  status:3:DeploymentStatus
DeploymentCondition = type:1:str!, status:2:str!, lastUpdateTime:6:time, lastTransitionTime:7:time,
  reason:4:str, message:5:str
DeploymentSpec = replicas:1:int32?, selector:2:meta.LabelSelector?, template:3:core.PodTemplateSpec!,
  strategy:4:DeploymentStrategy, minReadySeconds:5:int32, revisionHistoryLimit:6:int32?, paused:7:bool,
  progressDeadlineSeconds:9:int32?
DeploymentStatus = observedGeneration:1:int64, replicas:2:int32, updatedReplicas:3:int32, readyReplicas:7:int32,
  availableReplicas:4:int32, unavailableReplicas:5:int32, terminatingReplicas:9:int32?,
  conditions:6:[DeploymentCondition/type~type], collisionCount:8:int32?
DeploymentStrategy = type:1:str, rollingUpdate:2:RollingUpdateDeployment?
ReplicaSet = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:ReplicaSetSpec,
  status:3:ReplicaSetStatus
ReplicaSetCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str, message:5:str
ReplicaSetSpec = replicas:1:int32?, minReadySeconds:4:int32, selector:2:meta.LabelSelector?,
  template:3:core.PodTemplateSpec
ReplicaSetStatus = replicas:1:int32!, fullyLabeledReplicas:2:int32, readyReplicas:4:int32,
  availableReplicas:5:int32, terminatingReplicas:7:int32?, observedGeneration:3:int64,
  conditions:6:[ReplicaSetCondition/type~type]
RollingUpdateDaemonSet = maxUnavailable:1:intstr?, maxSurge:2:intstr?
RollingUpdateDeployment = maxUnavailable:1:intstr?, maxSurge:2:intstr?
RollingUpdateStatefulSetStrategy = partition:1:int32?, maxUnavailable:2:intstr?
StatefulSet = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:StatefulSetSpec,
  status:3:StatefulSetStatus
StatefulSetCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str, message:5:str
StatefulSetOrdinals = start:1:int32!
StatefulSetPersistentVolumeClaimRetentionPolicy = whenDeleted:1:str, whenScaled:2:str
StatefulSetSpec = replicas:1:int32?, selector:2:meta.LabelSelector?, template:3:core.PodTemplateSpec!,
  volumeClaimTemplates:4:[core.PersistentVolumeClaim], serviceName:5:str!, podManagementPolicy:6:str,
  updateStrategy:7:StatefulSetUpdateStrategy, revisionHistoryLimit:8:int32?, minReadySeconds:9:int32,
  persistentVolumeClaimRetentionPolicy:10:StatefulSetPersistentVolumeClaimRetentionPolicy?,
  ordinals:11:StatefulSetOrdinals?
StatefulSetStatus = observedGeneration:1:int64, replicas:2:int32!, readyReplicas:3:int32, currentReplicas:4:int32,
  updatedReplicas:5:int32, currentRevision:6:str, updateRevision:7:str, collisionCount:9:int32?,
  conditions:10:[StatefulSetCondition/type~type], availableReplicas:11:int32!
StatefulSetUpdateStrategy = type:1:str, rollingUpdate:2:RollingUpdateStatefulSetStrategy?
package autoscaling
CrossVersionObjectReference = kind:1:str!, name:2:str!, apiVersion:3:str
HorizontalPodAutoscaler = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:HorizontalPodAutoscalerSpec, status:3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec = scaleTargetRef:1:CrossVersionObjectReference!, minReplicas:2:int32?,
  maxReplicas:3:int32!, targetCPUUtilizationPercentage:4:int32?
HorizontalPodAutoscalerStatus = observedGeneration:1:int64?, lastScaleTime:2:time?, currentReplicas:3:int32!,
  desiredReplicas:4:int32!, currentCPUUtilizationPercentage:5:int32?
Scale = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:ScaleSpec, status:3:ScaleStatus
ScaleSpec = replicas:1:int32
ScaleStatus = replicas:1:int32!, selector:2:str
Scale = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:ScaleSpec, status:3:ScaleStatus
ScaleSpec = replicas:1:int32
ScaleStatus = replicas:1:int32!, selector:2:str
package autoscalingv2
ContainerResourceMetricSource = name:1:str!, target:2:MetricTarget!, container:3:str!
ContainerResourceMetricStatus = name:1:str!, current:2:MetricValueStatus!, container:3:str!
CrossVersionObjectReference = kind:1:str!, name:2:str!, apiVersion:3:str
ExternalMetricSource = metric:1:MetricIdentifier!, target:2:MetricTarget!
ExternalMetricStatus = metric:1:MetricIdentifier!, current:2:MetricValueStatus!
HPAScalingPolicy = type:1:str!, value:2:int32!, periodSeconds:3:int32!
HPAScalingRules = stabilizationWindowSeconds:3:int32?, selectPolicy:1:str?, policies:2:[HPAScalingPolicy],
  tolerance:4:quantity?
HorizontalPodAutoscaler = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:HorizontalPodAutoscalerSpec, status:3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior = scaleUp:1:HPAScalingRules?, scaleDown:2:HPAScalingRules?
HorizontalPodAutoscalerCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str,
  message:5:str
HorizontalPodAutoscalerSpec = scaleTargetRef:1:CrossVersionObjectReference!, minReplicas:2:int32?,
  maxReplicas:3:int32!, metrics:4:[MetricSpec], behavior:5:HorizontalPodAutoscalerBehavior?
HorizontalPodAutoscalerStatus = observedGeneration:1:int64?, lastScaleTime:2:time?, currentReplicas:3:int32,
  desiredReplicas:4:int32!, currentMetrics:5:[MetricStatus]!,
  conditions:6:[HorizontalPodAutoscalerCondition/type~type]
MetricIdentifier = name:1:str!, selector:2:meta.LabelSelector?
MetricSpec = type:1:str!, object:2:ObjectMetricSource?, pods:3:PodsMetricSource?,
  resource:4:ResourceMetricSource?, containerResource:7:ContainerResourceMetricSource?,
  external:5:ExternalMetricSource?
MetricStatus = type:1:str!, object:2:ObjectMetricStatus?, pods:3:PodsMetricStatus?,
  resource:4:ResourceMetricStatus?, containerResource:7:ContainerResourceMetricStatus?,
  external:5:ExternalMetricStatus?
MetricTarget = type:1:str!, value:2:quantity?, averageValue:3:quantity?, averageUtilization:4:int32?
MetricValueStatus = value:1:quantity?, averageValue:2:quantity?, averageUtilization:3:int32?
ObjectMetricSource = describedObject:1:CrossVersionObjectReference!, target:2:MetricTarget!,
  metric:3:MetricIdentifier!
ObjectMetricStatus = metric:1:MetricIdentifier!, current:2:MetricValueStatus!,
  describedObject:3:CrossVersionObjectReference!
PodsMetricSource = metric:1:MetricIdentifier!, target:2:MetricTarget!
PodsMetricStatus = metric:1:MetricIdentifier!, current:2:MetricValueStatus!
ResourceMetricSource = name:1:str!, target:2:MetricTarget!
ResourceMetricStatus = name:1:str!, current:2:MetricValueStatus!
package batch
CronJob = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:CronJobSpec, status:3:CronJobStatus
CronJobSpec = schedule:1:str!, timeZone:8:str?, startingDeadlineSeconds:2:int64?, concurrencyPolicy:3:str,
  suspend:4:bool?, jobTemplate:5:JobTemplateSpec!, successfulJobsHistoryLimit:6:int32?,
  failedJobsHistoryLimit:7:int32?
CronJobStatus = active:1:[core.ObjectReference], lastScheduleTime:4:time?, lastSuccessfulTime:5:time?
Job = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:JobSpec, status:3:JobStatus
JobCondition = type:1:str!, status:2:str!, lastProbeTime:3:time, lastTransitionTime:4:time, reason:5:str,
  message:6:str
JobSpec = parallelism:1:int32?, completions:2:int32?, activeDeadlineSeconds:3:int64?,
  podFailurePolicy:11:PodFailurePolicy?, successPolicy:16:SuccessPolicy?, backoffLimit:7:int32?,
  backoffLimitPerIndex:12:int32?, maxFailedIndexes:13:int32?, selector:4:meta.LabelSelector?,
  manualSelector:5:bool?, template:6:core.PodTemplateSpec!, ttlSecondsAfterFinished:8:int32?,
  completionMode:9:str?, suspend:10:bool?, podReplacementPolicy:14:str?, managedBy:15:str?
JobStatus = conditions:1:[JobCondition~type], startTime:2:time?, completionTime:3:time?, active:4:int32,
  succeeded:5:int32, failed:6:int32, terminating:11:int32?, completedIndexes:7:str, failedIndexes:10:str?,
  uncountedTerminatedPods:8:UncountedTerminatedPods?, ready:9:int32?
JobTemplateSpec = metadata:1:meta.ObjectMeta, spec:2:JobSpec
PodFailurePolicy = rules:1:[PodFailurePolicyRule]!
PodFailurePolicyOnExitCodesRequirement = containerName:1:str?, operator:2:str!, values:3:[int32/*]!
PodFailurePolicyOnPodConditionsPattern = type:1:str!, status:2:str!
PodFailurePolicyRule = action:1:str!, onExitCodes:2:PodFailurePolicyOnExitCodesRequirement?,
  onPodConditions:3:[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy = rules:1:[SuccessPolicyRule]!
SuccessPolicyRule = succeededIndexes:1:str?, succeededCount:2:int32?
UncountedTerminatedPods = succeeded:1:[str/*], failed:2:[str/*]
package policy
Eviction = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, deleteOptions:2:meta.DeleteOptions?
PodDisruptionBudget = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:PodDisruptionBudgetSpec, status:3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec = minAvailable:1:intstr?, selector:2:meta.LabelSelector?,
  maxUnavailable:3:intstr?, unhealthyPodEvictionPolicy:4:str?
PodDisruptionBudgetStatus = observedGeneration:1:int64, disruptedPods:2:{time}, disruptionsAllowed:3:int32!,
  currentHealthy:4:int32!, desiredHealthy:5:int32!, expectedPods:6:int32!,
  conditions:7:[meta.Condition/type~type]
"""
