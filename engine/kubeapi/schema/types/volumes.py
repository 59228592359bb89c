"""Type table of core/v1 volumes and claims, from the API of Kubernetes 1.36.

The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package core
AWSElasticBlockStoreVolumeSource = volumeID:1:str!, fsType:2:str, partition:3:int32, readOnly:4:bool
AzureDiskVolumeSource = diskName:1:str!, diskURI:2:str!, cachingMode:3:str?=ReadWrite, fsType:4:str?=ext4,
  readOnly:5:bool?, kind:6:str?=Shared
AzureFilePersistentVolumeSource = secretName:1:str!, shareName:2:str!, readOnly:3:bool,
  secretNamespace:4:str?
AzureFileVolumeSource = secretName:1:str!, shareName:2:str!, readOnly:3:bool
CSIPersistentVolumeSource = driver:1:str!, volumeHandle:2:str!, readOnly:3:bool, fsType:4:str,
  volumeAttributes:5:{str}, controllerPublishSecretRef:6:SecretReference?,
  nodeStageSecretRef:7:SecretReference?, nodePublishSecretRef:8:SecretReference?,
  controllerExpandSecretRef:9:SecretReference?, nodeExpandSecretRef:10:SecretReference?
CSIVolumeSource = driver:1:str!, readOnly:2:bool?, fsType:3:str?, volumeAttributes:4:{str},
  nodePublishSecretRef:5:LocalObjectReference?
CephFSPersistentVolumeSource = monitors:1:[str]!, path:2:str, user:3:str, secretFile:4:str,
  secretRef:5:SecretReference?, readOnly:6:bool
CephFSVolumeSource = monitors:1:[str]!, path:2:str, user:3:str, secretFile:4:str,
  secretRef:5:LocalObjectReference?, readOnly:6:bool
CinderPersistentVolumeSource = volumeID:1:str!, fsType:2:str, readOnly:3:bool,
  secretRef:4:SecretReference?
CinderVolumeSource = volumeID:1:str!, fsType:2:str, readOnly:3:bool, secretRef:4:LocalObjectReference?
ClusterTrustBundleProjection = name:1:str?, signerName:2:str?, labelSelector:3:meta.LabelSelector?,
  optional:5:bool?, path:4:str!
ConfigMapProjection = _:1:LocalObjectReference, items:2:[KeyToPath], optional:4:bool?
ConfigMapVolumeSource = _:1:LocalObjectReference, items:2:[KeyToPath], defaultMode:3:int32?,
  optional:4:bool?
DownwardAPIProjection = items:1:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile = path:1:str!, fieldRef:2:ObjectFieldSelector?,
  resourceFieldRef:3:ResourceFieldSelector?, mode:4:int32?
DownwardAPIVolumeSource = items:1:[DownwardAPIVolumeFile], defaultMode:2:int32?
EmptyDirVolumeSource = medium:1:str, sizeLimit:2:quantity?
EphemeralVolumeSource = volumeClaimTemplate:1:PersistentVolumeClaimTemplate?
FCVolumeSource = targetWWNs:1:[str], lun:2:int32?, fsType:3:str, readOnly:4:bool, wwids:5:[str]
FlexPersistentVolumeSource = driver:1:str!, fsType:2:str, secretRef:3:SecretReference?, readOnly:4:bool,
  options:5:{str}
FlexVolumeSource = driver:1:str!, fsType:2:str, secretRef:3:LocalObjectReference?, readOnly:4:bool,
  options:5:{str}
FlockerVolumeSource = datasetName:1:str, datasetUUID:2:str
GCEPersistentDiskVolumeSource = pdName:1:str!, fsType:2:str, partition:3:int32, readOnly:4:bool
GitRepoVolumeSource = repository:1:str!, revision:2:str, directory:3:str
GlusterfsPersistentVolumeSource = endpoints:1:str!, path:2:str!, readOnly:3:bool,
  endpointsNamespace:4:str?
GlusterfsVolumeSource = endpoints:1:str!, path:2:str!, readOnly:3:bool
HostPathVolumeSource = path:1:str!, type:2:str?
ISCSIPersistentVolumeSource = targetPortal:1:str!, iqn:2:str!, lun:3:int32!, iscsiInterface:4:str=default,
  fsType:5:str, readOnly:6:bool, portals:7:[str], chapAuthDiscovery:8:bool, chapAuthSession:11:bool,
  secretRef:10:SecretReference?, initiatorName:12:str?
ISCSIVolumeSource = targetPortal:1:str!, iqn:2:str!, lun:3:int32!, iscsiInterface:4:str=default,
  fsType:5:str, readOnly:6:bool, portals:7:[str], chapAuthDiscovery:8:bool, chapAuthSession:11:bool,
  secretRef:10:LocalObjectReference?, initiatorName:12:str?
ImageVolumeSource = reference:1:str, pullPolicy:2:str
KeyToPath = key:1:str!, path:2:str!, mode:3:int32?
LocalObjectReference% = name:1:str
LocalVolumeSource = path:1:str!, fsType:2:str?
ModifyVolumeStatus = targetVolumeAttributesClassName:1:str, status:2:str!
NFSVolumeSource = server:1:str!, path:2:str!, readOnly:3:bool
NodeSelector% = nodeSelectorTerms:1:[NodeSelectorTerm]!
NodeSelectorRequirement = key:1:str!, operator:2:str!, values:3:[str]
NodeSelectorTerm% = matchExpressions:1:[NodeSelectorRequirement], matchFields:2:[NodeSelectorRequirement]
ObjectFieldSelector% = apiVersion:1:str, fieldPath:2:str!
ObjectReference% = kind:1:str, namespace:2:str, name:3:str, uid:4:str, apiVersion:5:str,
  resourceVersion:6:str, fieldPath:7:str
PersistentVolume = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:PersistentVolumeSpec,
  status:3:PersistentVolumeStatus
PersistentVolumeClaim = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:PersistentVolumeClaimSpec, status:3:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition = type:1:str!, status:2:str!, lastProbeTime:3:time,
  lastTransitionTime:4:time, reason:5:str, message:6:str
PersistentVolumeClaimSpec = accessModes:1:[str], selector:4:meta.LabelSelector?,
  resources:2:VolumeResourceRequirements, volumeName:3:str, storageClassName:5:str?, volumeMode:6:str?,
  dataSource:7:TypedLocalObjectReference?, dataSourceRef:8:TypedObjectReference?,
  volumeAttributesClassName:9:str?
PersistentVolumeClaimStatus = phase:1:str, accessModes:2:[str], capacity:3:{quantity},
  conditions:4:[PersistentVolumeClaimCondition/type~type], allocatedResources:5:{quantity},
  allocatedResourceStatuses:7:{str}, currentVolumeAttributesClassName:8:str?,
  modifyVolumeStatus:9:ModifyVolumeStatus?
PersistentVolumeClaimTemplate = metadata:1:meta.ObjectMeta, spec:2:PersistentVolumeClaimSpec!
PersistentVolumeClaimVolumeSource = claimName:1:str!, readOnly:2:bool
PersistentVolumeSource = gcePersistentDisk:1:GCEPersistentDiskVolumeSource?,
  awsElasticBlockStore:2:AWSElasticBlockStoreVolumeSource?, hostPath:3:HostPathVolumeSource?,
  glusterfs:4:GlusterfsPersistentVolumeSource?, nfs:5:NFSVolumeSource?, rbd:6:RBDPersistentVolumeSource?,
  iscsi:7:ISCSIPersistentVolumeSource?, cinder:8:CinderPersistentVolumeSource?,
  cephfs:9:CephFSPersistentVolumeSource?, fc:10:FCVolumeSource?, flocker:11:FlockerVolumeSource?,
  flexVolume:12:FlexPersistentVolumeSource?, azureFile:13:AzureFilePersistentVolumeSource?,
  vsphereVolume:14:VsphereVirtualDiskVolumeSource?, quobyte:15:QuobyteVolumeSource?,
  azureDisk:16:AzureDiskVolumeSource?, photonPersistentDisk:17:PhotonPersistentDiskVolumeSource?,
  portworxVolume:18:PortworxVolumeSource?, scaleIO:19:ScaleIOPersistentVolumeSource?,
  local:20:LocalVolumeSource?, storageos:21:StorageOSPersistentVolumeSource?,
  csi:22:CSIPersistentVolumeSource?
PersistentVolumeSpec = capacity:1:{quantity}, _:2:PersistentVolumeSource, accessModes:3:[str],
  claimRef:4:ObjectReference?, persistentVolumeReclaimPolicy:5:str, storageClassName:6:str,
  mountOptions:7:[str], volumeMode:8:str?, nodeAffinity:9:VolumeNodeAffinity?,
  volumeAttributesClassName:10:str?
PersistentVolumeStatus = phase:1:str, message:2:str, reason:3:str, lastPhaseTransitionTime:4:time?
PhotonPersistentDiskVolumeSource = pdID:1:str!, fsType:2:str
PodCertificateProjection = signerName:1:str, keyType:2:str, maxExpirationSeconds:3:int32?,
  credentialBundlePath:4:str, keyPath:5:str, certificateChainPath:6:str, userAnnotations:7:{str}
PortworxVolumeSource = volumeID:1:str!, fsType:2:str, readOnly:3:bool
ProjectedVolumeSource = sources:1:[VolumeProjection]!, defaultMode:2:int32?
QuobyteVolumeSource = registry:1:str!, volume:2:str!, readOnly:3:bool, user:4:str, group:5:str,
  tenant:6:str
RBDPersistentVolumeSource = monitors:1:[str]!, image:2:str!, fsType:3:str, pool:4:str=rbd,
  user:5:str=admin, keyring:6:str=/etc/ceph/keyring, secretRef:7:SecretReference?, readOnly:8:bool
RBDVolumeSource = monitors:1:[str]!, image:2:str!, fsType:3:str, pool:4:str=rbd, user:5:str=admin,
  keyring:6:str=/etc/ceph/keyring, secretRef:7:LocalObjectReference?, readOnly:8:bool
ResourceFieldSelector% = containerName:1:str, resource:2:str!, divisor:3:quantity
ScaleIOPersistentVolumeSource = gateway:1:str!, system:2:str!, secretRef:3:SecretReference?,
  sslEnabled:4:bool, protectionDomain:5:str, storagePool:6:str, storageMode:7:str=ThinProvisioned,
  volumeName:8:str, fsType:9:str=xfs, readOnly:10:bool
ScaleIOVolumeSource = gateway:1:str!, system:2:str!, secretRef:3:LocalObjectReference?, sslEnabled:4:bool,
  protectionDomain:5:str, storagePool:6:str, storageMode:7:str=ThinProvisioned, volumeName:8:str,
  fsType:9:str=xfs, readOnly:10:bool
SecretProjection = _:1:LocalObjectReference, items:2:[KeyToPath], optional:4:bool?
SecretReference% = name:1:str, namespace:2:str
SecretVolumeSource = secretName:1:str, items:2:[KeyToPath], defaultMode:3:int32?, optional:4:bool?
ServiceAccountTokenProjection = audience:1:str, expirationSeconds:2:int64?, path:3:str!
StorageOSPersistentVolumeSource = volumeName:1:str, volumeNamespace:2:str, fsType:3:str, readOnly:4:bool,
  secretRef:5:ObjectReference?
StorageOSVolumeSource = volumeName:1:str, volumeNamespace:2:str, fsType:3:str, readOnly:4:bool,
  secretRef:5:LocalObjectReference?
TypedLocalObjectReference% = apiGroup:1:str?, kind:2:str!, name:3:str!
TypedObjectReference = apiGroup:1:str?, kind:2:str!, name:3:str!, namespace:4:str?
Volume = name:1:str!, _:2:VolumeSource
VolumeNodeAffinity = required:1:NodeSelector?
VolumeProjection = secret:1:SecretProjection?, downwardAPI:2:DownwardAPIProjection?,
  configMap:3:ConfigMapProjection?, serviceAccountToken:4:ServiceAccountTokenProjection?,
  clusterTrustBundle:5:ClusterTrustBundleProjection?, podCertificate:6:PodCertificateProjection?
VolumeResourceRequirements = limits:1:{quantity}, requests:2:{quantity}
VolumeSource = hostPath:1:HostPathVolumeSource?, emptyDir:2:EmptyDirVolumeSource?,
  gcePersistentDisk:3:GCEPersistentDiskVolumeSource?,
  awsElasticBlockStore:4:AWSElasticBlockStoreVolumeSource?, gitRepo:5:GitRepoVolumeSource?,
  secret:6:SecretVolumeSource?, nfs:7:NFSVolumeSource?, iscsi:8:ISCSIVolumeSource?,
  glusterfs:9:GlusterfsVolumeSource?, persistentVolumeClaim:10:PersistentVolumeClaimVolumeSource?,
  rbd:11:RBDVolumeSource?, flexVolume:12:FlexVolumeSource?, cinder:13:CinderVolumeSource?,
  cephfs:14:CephFSVolumeSource?, flocker:15:FlockerVolumeSource?, downwardAPI:16:DownwardAPIVolumeSource?,
  fc:17:FCVolumeSource?, azureFile:18:AzureFileVolumeSource?, configMap:19:ConfigMapVolumeSource?,
  vsphereVolume:20:VsphereVirtualDiskVolumeSource?, quobyte:21:QuobyteVolumeSource?,
  azureDisk:22:AzureDiskVolumeSource?, photonPersistentDisk:23:PhotonPersistentDiskVolumeSource?,
  projected:26:ProjectedVolumeSource?, portworxVolume:24:PortworxVolumeSource?,
  scaleIO:25:ScaleIOVolumeSource?, storageos:27:StorageOSVolumeSource?, csi:28:CSIVolumeSource?,
  ephemeral:29:EphemeralVolumeSource?, image:30:ImageVolumeSource?
VsphereVirtualDiskVolumeSource = volumePath:1:str!, fsType:2:str, storagePolicyName:3:str,
  storagePolicyID:4:str
"""
