"""Type table of networking, storage, rbac, scheduling, coordination, events and discovery (Kubernetes 1.36).

The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package coordination
Lease = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:LeaseSpec
LeaseSpec = holderIdentity:1:str?, leaseDurationSeconds:2:int32?, acquireTime:3:micro?, renewTime:4:micro?,
  leaseTransitions:5:int32?, strategy:6:str?, preferredHolder:7:str?
package discovery
Endpoint = addresses:1:[str/*]!, conditions:2:EndpointConditions, hostname:3:str?,
  targetRef:4:core.ObjectReference?, deprecatedTopology:5:{str}, nodeName:6:str?, zone:7:str?,
  hints:8:EndpointHints?
EndpointConditions = ready:1:bool?, serving:2:bool?, terminating:3:bool?
EndpointHints = forZones:1:[ForZone], forNodes:2:[ForNode]
EndpointPort% = name:1:str?, protocol:2:str?, port:3:int32?, appProtocol:4:str?
EndpointSlice = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, addressType:4:str!,
  endpoints:2:[Endpoint]!, ports:3:[EndpointPort]!
ForNode = name:1:str!
ForZone = name:1:str!
package events
Event = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta!, eventTime:2:micro!, series:3:EventSeries?,
  reportingController:4:str, reportingInstance:5:str, action:6:str, reason:7:str,
  regarding:8:core.ObjectReference, related:9:core.ObjectReference?, note:10:str, type:11:str,
  deprecatedSource:12:core.EventSource, deprecatedFirstTimestamp:13:time, deprecatedLastTimestamp:14:time,
  deprecatedCount:15:int32
EventSeries = count:1:int32!, lastObservedTime:2:micro!
package networking
HTTPIngressPath = path:1:str, pathType:3:str?, backend:2:IngressBackend!
HTTPIngressRuleValue = paths:1:[HTTPIngressPath]!
IPBlock = cidr:1:str!, except:2:[str]
Ingress = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:IngressSpec, status:3:IngressStatus
IngressBackend = service:4:IngressServiceBackend?, resource:3:core.TypedLocalObjectReference?
IngressClass = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:IngressClassSpec
IngressClassParametersReference = apiGroup:1:str?, kind:2:str!, name:3:str!, scope:4:str?,
  namespace:5:str?
IngressClassSpec = controller:1:str, parameters:2:IngressClassParametersReference?
IngressLoadBalancerIngress = ip:1:str, hostname:2:str, ports:4:[IngressPortStatus]
IngressLoadBalancerStatus = ingress:1:[IngressLoadBalancerIngress]
IngressPortStatus = port:1:int32!, protocol:2:str!, error:3:str?
IngressRule = host:1:str, _:2:IngressRuleValue
IngressRuleValue = http:1:HTTPIngressRuleValue?
IngressServiceBackend = name:1:str!, port:2:ServiceBackendPort
IngressSpec = ingressClassName:4:str?, defaultBackend:1:IngressBackend?, tls:2:[IngressTLS],
  rules:3:[IngressRule]
IngressStatus = loadBalancer:1:IngressLoadBalancerStatus
IngressTLS = hosts:1:[str], secretName:2:str
NetworkPolicy = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:NetworkPolicySpec
NetworkPolicyEgressRule = ports:1:[NetworkPolicyPort], to:2:[NetworkPolicyPeer]
NetworkPolicyIngressRule = ports:1:[NetworkPolicyPort], from:2:[NetworkPolicyPeer]
NetworkPolicyPeer = podSelector:1:meta.LabelSelector?, namespaceSelector:2:meta.LabelSelector?,
  ipBlock:3:IPBlock?
NetworkPolicyPort = protocol:1:str?, port:2:intstr?, endPort:3:int32?
NetworkPolicySpec = podSelector:1:meta.LabelSelector!, ingress:2:[NetworkPolicyIngressRule],
  egress:3:[NetworkPolicyEgressRule], policyTypes:4:[str]
ServiceBackendPort% = name:1:str, number:2:int32
package rbac
AggregationRule = clusterRoleSelectors:1:[meta.LabelSelector]
ClusterRole = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, rules:2:[PolicyRule]!,
  aggregationRule:3:AggregationRule?
ClusterRoleBinding = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, subjects:2:[Subject],
  roleRef:3:RoleRef!
PolicyRule = verbs:1:[str]!, apiGroups:2:[str], resources:3:[str], resourceNames:4:[str],
  nonResourceURLs:5:[str]
Role = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, rules:2:[PolicyRule]!
RoleBinding = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, subjects:2:[Subject],
  roleRef:3:RoleRef!
RoleRef% = apiGroup:1:str!, kind:2:str!, name:3:str!
Subject% = kind:1:str!, apiGroup:2:str, name:3:str!, namespace:4:str
package scheduling
PriorityClass = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, value:2:int32!, globalDefault:3:bool,
  description:4:str, preemptionPolicy:5:str?
package storage
CSIDriver = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:CSIDriverSpec!
CSIDriverSpec = attachRequired:1:bool?, podInfoOnMount:2:bool?, volumeLifecycleModes:3:[str/*],
  storageCapacity:4:bool?, fsGroupPolicy:5:str?, tokenRequests:6:[TokenRequest],
  requiresRepublish:7:bool?, seLinuxMount:8:bool?, nodeAllocatableUpdatePeriodSeconds:9:int64?,
  serviceAccountTokenInSecrets:10:bool?, preventPodSchedulingIfMissing:11:bool?
CSINode = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:CSINodeSpec!
CSINodeDriver = name:1:str!, nodeID:2:str!, topologyKeys:3:[str]!, allocatable:4:VolumeNodeResources?
CSINodeSpec = drivers:1:[CSINodeDriver/name~name]!
StorageClass = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, provisioner:2:str!,
  parameters:3:{str}, reclaimPolicy:4:str?, mountOptions:5:[str], allowVolumeExpansion:6:bool?,
  volumeBindingMode:7:str?, allowedTopologies:8:[core.TopologySelectorTerm]
TokenRequest = audience:1:str!, expirationSeconds:2:int64?
VolumeAttachment = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:VolumeAttachmentSpec!,
  status:3:VolumeAttachmentStatus
VolumeAttachmentSource = persistentVolumeName:1:str?, inlineVolumeSpec:2:core.PersistentVolumeSpec?
VolumeAttachmentSpec = attacher:1:str!, source:2:VolumeAttachmentSource!, nodeName:3:str!
VolumeAttachmentStatus = attached:1:bool!, attachmentMetadata:2:{str}, attachError:3:VolumeError?,
  detachError:4:VolumeError?
VolumeError = time:1:time, message:2:str, errorCode:3:int32?
VolumeNodeResources = count:1:int32?
"""
