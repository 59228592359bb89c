"""Type table of meta/v1, and of core/v1 without pods and volumes, from the API of Kubernetes 1.36.

The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package core
AttachedVolume = name:1:str!, devicePath:2:str!
ClientIPConfig = timeoutSeconds:1:int32?
ConfigMap = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, immutable:4:bool?, data:2:{str},
  binaryData:3:{bytes}
ConfigMapNodeConfigSource = namespace:1:str!, name:2:str!, uid:3:str, resourceVersion:4:str,
  kubeletConfigKey:5:str!
ContainerImage = names:1:[str]!, sizeBytes:2:int64
DaemonEndpoint = Port:1:int32!
EndpointAddress% = ip:1:str!, hostname:3:str, nodeName:4:str?, targetRef:2:ObjectReference?
EndpointPort% = name:1:str, port:2:int32!, protocol:3:str, appProtocol:4:str?
EndpointSubset = addresses:1:[EndpointAddress], notReadyAddresses:2:[EndpointAddress],
  ports:3:[EndpointPort]
Endpoints = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, subsets:2:[EndpointSubset]
Event = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta!, involvedObject:2:ObjectReference!,
  reason:3:str, message:4:str, source:5:EventSource, firstTimestamp:6:time, lastTimestamp:7:time,
  count:8:int32, type:9:str, eventTime:10:micro, series:11:EventSeries?, action:12:str,
  related:13:ObjectReference?, reportingComponent:14:str!, reportingInstance:15:str!
EventSeries = count:1:int32, lastObservedTime:2:micro
EventSource = component:1:str, host:2:str
LimitRange = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:LimitRangeSpec
LimitRangeItem = type:1:str!, max:2:{quantity}, min:3:{quantity}, default:4:{quantity},
  defaultRequest:5:{quantity}, maxLimitRequestRatio:6:{quantity}
LimitRangeSpec = limits:1:[LimitRangeItem]!
LoadBalancerIngress = ip:1:str, hostname:2:str, ipMode:3:str?, ports:4:[PortStatus]
LoadBalancerStatus = ingress:1:[LoadBalancerIngress]
Namespace = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:NamespaceSpec,
  status:3:NamespaceStatus
NamespaceCondition = type:1:str!, status:2:str!, lastTransitionTime:4:time, reason:5:str, message:6:str
NamespaceSpec = finalizers:1:[str]
NamespaceStatus = phase:1:str, conditions:2:[NamespaceCondition/type~type]
Node = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:NodeSpec, status:3:NodeStatus
NodeAddress = type:1:str!, address:2:str!
NodeCondition = type:1:str!, status:2:str!, lastHeartbeatTime:3:time, lastTransitionTime:4:time,
  reason:5:str, message:6:str
NodeConfigSource = configMap:2:ConfigMapNodeConfigSource?
NodeConfigStatus = assigned:1:NodeConfigSource?, active:2:NodeConfigSource?,
  lastKnownGood:3:NodeConfigSource?, error:4:str
NodeDaemonEndpoints = kubeletEndpoint:1:DaemonEndpoint
NodeFeatures = supplementalGroupsPolicy:1:bool?
NodeRuntimeHandler = name:1:str!, features:2:NodeRuntimeHandlerFeatures?
NodeRuntimeHandlerFeatures = recursiveReadOnlyMounts:1:bool?, userNamespaces:2:bool?
NodeSpec = podCIDR:1:str, podCIDRs:7:[str/*~*], providerID:3:str, unschedulable:4:bool, taints:5:[Taint],
  configSource:6:NodeConfigSource?, externalID:2:str
NodeStatus = capacity:1:{quantity}, allocatable:2:{quantity}, phase:3:str,
  conditions:4:[NodeCondition/type~type], addresses:5:[NodeAddress/type~type],
  daemonEndpoints:6:NodeDaemonEndpoints, nodeInfo:7:NodeSystemInfo, images:8:[ContainerImage],
  volumesInUse:9:[str], volumesAttached:10:[AttachedVolume], config:11:NodeConfigStatus?,
  runtimeHandlers:12:[NodeRuntimeHandler], features:13:NodeFeatures?, declaredFeatures:14:[str]
NodeSwapStatus = capacity:1:int64?
NodeSystemInfo = machineID:1:str!, systemUUID:2:str!, bootID:3:str!, kernelVersion:4:str!, osImage:5:str!,
  containerRuntimeVersion:6:str!, kubeletVersion:7:str!, kubeProxyVersion:8:str!, operatingSystem:9:str!,
  architecture:10:str!, swap:11:NodeSwapStatus?
PortStatus = port:1:int32!, protocol:2:str!, error:3:str?
ReplicationController = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:ReplicationControllerSpec, status:3:ReplicationControllerStatus
ReplicationControllerCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str,
  message:5:str
ReplicationControllerSpec = replicas:1:int32?=1, minReadySeconds:4:int32, selector:2:{str}%,
  template:3:PodTemplateSpec?
ReplicationControllerStatus = replicas:1:int32!, fullyLabeledReplicas:2:int32, readyReplicas:4:int32,
  availableReplicas:5:int32, observedGeneration:3:int64,
  conditions:6:[ReplicationControllerCondition/type~type]
ResourceQuota = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:ResourceQuotaSpec,
  status:3:ResourceQuotaStatus
ResourceQuotaSpec = hard:1:{quantity}, scopes:2:[str], scopeSelector:3:ScopeSelector?
ResourceQuotaStatus = hard:1:{quantity}, used:2:{quantity}
ScopeSelector% = matchExpressions:1:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement = scopeName:1:str!, operator:2:str!, values:3:[str]
Secret = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, immutable:5:bool?, data:2:{bytes},
  stringData:4:{str}, type:3:str
Service = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:ServiceSpec, status:3:ServiceStatus
ServiceAccount = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  secrets:2:[ObjectReference/name~name], imagePullSecrets:3:[LocalObjectReference],
  automountServiceAccountToken:4:bool?
ServicePort = name:1:str, protocol:2:str=TCP, appProtocol:6:str?, port:3:int32!, targetPort:4:intstr,
  nodePort:5:int32
ServiceSpec = ports:1:[ServicePort/port+protocol~port], selector:2:{str}%, clusterIP:3:str,
  clusterIPs:18:[str], type:4:str, externalIPs:5:[str], sessionAffinity:7:str, loadBalancerIP:8:str,
  loadBalancerSourceRanges:9:[str], externalName:10:str, externalTrafficPolicy:11:str,
  healthCheckNodePort:12:int32, publishNotReadyAddresses:13:bool,
  sessionAffinityConfig:14:SessionAffinityConfig?, ipFamilies:19:[str], ipFamilyPolicy:17:str?,
  allocateLoadBalancerNodePorts:20:bool?, loadBalancerClass:21:str?, internalTrafficPolicy:22:str?,
  trafficDistribution:23:str?
ServiceStatus = loadBalancer:1:LoadBalancerStatus, conditions:2:[meta.Condition/type~type]
SessionAffinityConfig = clientIP:1:ClientIPConfig?
Taint = key:1:str!, value:2:str, effect:3:str!, timeAdded:4:time?
TopologySelectorLabelRequirement = key:1:str!, values:2:[str]!
TopologySelectorTerm% = matchLabelExpressions:1:[TopologySelectorLabelRequirement]
package meta
Condition = type:1:str!, status:2:str!, observedGeneration:3:int64, lastTransitionTime:4:time!,
  reason:5:str!, message:6:str!
DeleteOptions = apiVersion:str, kind:str, gracePeriodSeconds:1:int64?, preconditions:2:Preconditions?,
  orphanDependents:3:bool?, propagationPolicy:4:str?, dryRun:5:[str],
  ignoreStoreReadErrorWithClusterBreakingPotential:6:bool?
FieldSelectorRequirement = key:1:str!, operator:2:str!, values:3:[str]
LabelSelector% = matchLabels:1:{str}, matchExpressions:2:[LabelSelectorRequirement]
LabelSelectorRequirement = key:1:str!, operator:2:str!, values:3:[str]
ManagedFieldsEntry = manager:1:str, operation:2:str, apiVersion:3:str, time:4:time?, fieldsType:6:str,
  fieldsV1:7:any?, subresource:8:str
ObjectMeta = name:1:str, generateName:2:str, namespace:3:str, selfLink:4:str, uid:5:str,
  resourceVersion:6:str, generation:7:int64, creationTimestamp:8:time, deletionTimestamp:9:time?,
  deletionGracePeriodSeconds:10:int64?, labels:11:{str}, annotations:12:{str},
  ownerReferences:13:[OwnerReference/uid~uid], finalizers:14:[str/*~*],
  managedFields:17:[ManagedFieldsEntry]
OwnerReference% = apiVersion:5:str!, kind:1:str!, name:3:str!, uid:4:str!, controller:6:bool?,
  blockOwnerDeletion:7:bool?
Preconditions = uid:1:str?, resourceVersion:2:str?
"""
