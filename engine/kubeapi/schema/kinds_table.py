"""Tables of the served kinds: names, short names, categories, traits.

A row is plural, kind, short names, categories and traits (``-`` for none). Traits: ``global``
(cluster-scoped), ``review`` (create only, not stored), ``figures`` (get and list only), ``single`` (no
deletecollection), and the names of subresources: ``status``, ``scale`` and those of ``PARTS``. A ``group`` line
sets the apiVersion and the type package of the rows after it.
"""

from typing import Final

RELEASE: Final = "v1.36.2"
"""The release of Kubernetes whose API is served."""

PARTS: Final[dict[str, tuple[str, str, str, tuple[str, ...]]]] = {
    "pods.log": ("", "v1", "Pod", ("get",)),
    "pods.exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "pods.eviction": ("policy", "v1", "Eviction", ("create",)),
    "namespaces.finalize": ("", "v1", "Namespace", ("update",)),
    "serviceaccounts.token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "certificatesigningrequests.approval": (
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        ("get", "patch", "update"),
    ),
    "clusters.proxy": (
        "cluster.karmada.io",
        "v1alpha1",
        "Cluster",
        ("create", "delete", "get", "patch", "update"),
    ),
    "proxying.proxy": (
        "search.karmada.io",
        "v1alpha1",
        "Proxying",
        ("create", "delete", "get", "patch", "update"),
    ),
}
"""Subresources other than status and scale: group, version and kind of the body, and verbs."""

BUILT_IN: Final = """
group v1 core
configmaps ConfigMap cm - -
endpoints Endpoints ep - -
events Event ev - -
limitranges LimitRange limits - -
namespaces Namespace ns - global,single,status,namespaces.finalize
nodes Node no - global,status
persistentvolumeclaims PersistentVolumeClaim pvc - status
persistentvolumes PersistentVolume pv - global,status
pods Pod po all status,pods.log,pods.exec,pods.eviction
podtemplates PodTemplate - - -
replicationcontrollers ReplicationController rc all status,scale
resourcequotas ResourceQuota quota - status
secrets Secret - - -
serviceaccounts ServiceAccount sa - serviceaccounts.token
services Service svc all status
group apps/v1 apps
controllerrevisions ControllerRevision - - -
daemonsets DaemonSet ds all status
deployments Deployment deploy all status,scale
replicasets ReplicaSet rs all status,scale
statefulsets StatefulSet sts all status,scale
group events.k8s.io/v1 events
events Event ev - -
group authentication.k8s.io/v1 authentication
selfsubjectreviews SelfSubjectReview - - global,review
tokenreviews TokenReview - - global,review
group authorization.k8s.io/v1 authorization
localsubjectaccessreviews LocalSubjectAccessReview - - review
selfsubjectaccessreviews SelfSubjectAccessReview - - global,review
selfsubjectrulesreviews SelfSubjectRulesReview - - global,review
subjectaccessreviews SubjectAccessReview - - global,review
group autoscaling/v2 autoscalingv2
horizontalpodautoscalers HorizontalPodAutoscaler hpa all status
group autoscaling/v1 autoscaling
horizontalpodautoscalers HorizontalPodAutoscaler hpa all status
group batch/v1 batch
cronjobs CronJob cj all status
jobs Job - all status
group certificates.k8s.io/v1 certificates
certificatesigningrequests CertificateSigningRequest csr - global,status,certificatesigningrequests.approval
group networking.k8s.io/v1 networking
ingressclasses IngressClass - - global
ingresses Ingress ing - status
networkpolicies NetworkPolicy netpol - -
group policy/v1 policy
poddisruptionbudgets PodDisruptionBudget pdb - status
group rbac.authorization.k8s.io/v1 rbac
clusterrolebindings ClusterRoleBinding - - global
clusterroles ClusterRole - - global
rolebindings RoleBinding - - -
roles Role - - -
group storage.k8s.io/v1 storage
csidrivers CSIDriver - - global
csinodes CSINode - - global
storageclasses StorageClass sc - global
volumeattachments VolumeAttachment - - global,status
group admissionregistration.k8s.io/v1 admissionregistration
mutatingwebhookconfigurations MutatingWebhookConfiguration - api-extensions global
validatingadmissionpolicies ValidatingAdmissionPolicy - api-extensions global,status
validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding - api-extensions global
validatingwebhookconfigurations ValidatingWebhookConfiguration - api-extensions global
group apiextensions.k8s.io/v1 apiextensions
customresourcedefinitions CustomResourceDefinition crd,crds api-extensions global,status
group scheduling.k8s.io/v1 scheduling
priorityclasses PriorityClass pc - global
group coordination.k8s.io/v1 coordination
leases Lease - - -
group discovery.k8s.io/v1 discovery
endpointslices EndpointSlice - - -
group metrics.k8s.io/v1beta1 metrics
nodes NodeMetrics - - global,figures
pods PodMetrics - - figures
"""

KARMADA: Final = """
group apps.karmada.io/v1alpha1 apps.karmada
workloadrebalancers WorkloadRebalancer - - global,status
group cluster.karmada.io/v1alpha1 cluster.karmada
clusters Cluster - karmada-io global,status,clusters.proxy
group autoscaling.karmada.io/v1alpha1 autoscaling.karmada
cronfederatedhpas CronFederatedHPA cronfhpa karmada-io status
federatedhpas FederatedHPA fhpa karmada-io status
group config.karmada.io/v1alpha1 config.karmada
resourceinterpretercustomizations ResourceInterpreterCustomization ric karmada-io global
group networking.karmada.io/v1alpha1 networking.karmada
multiclusteringresses MultiClusterIngress mci karmada-io status
multiclusterservices MultiClusterService mcs karmada-io status
group policy.karmada.io/v1alpha1 policy.karmada
clusteroverridepolicies ClusterOverridePolicy cop karmada-io global
clusterpropagationpolicies ClusterPropagationPolicy cpp karmada-io global
clustertaintpolicies ClusterTaintPolicy - karmada-io global
federatedresourcequotas FederatedResourceQuota - karmada-io status
overridepolicies OverridePolicy op karmada-io -
propagationpolicies PropagationPolicy pp karmada-io -
group remedy.karmada.io/v1alpha1 remedy.karmada
remedies Remedy remedy karmada-io global
group search.karmada.io/v1alpha1 search.karmada
proxying Proxying - - global,figures,proxying.proxy
resourceregistries ResourceRegistry - - global,status
search Search - - global,figures
group work.karmada.io/v1alpha2 work.karmada
clusterresourcebindings ClusterResourceBinding crb karmada-io global,status
resourcebindings ResourceBinding rb karmada-io status
group work.karmada.io/v1alpha1 work.karmada
works Work wk karmada-io status
group config.reballast.io/v1alpha1 config.reballast
replicainterpreters ReplicaInterpreter ri - global
"""
