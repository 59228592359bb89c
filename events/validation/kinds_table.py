"""Tables of the known kinds: names, categories, routes, traits.

A row is plural, kind, short names, categories, route and traits (``-`` for none).

- The route selects the topic and the event type of an object's writes; see ``known_kinds``.
- Traits: ``global`` (cluster-scoped), ``derived`` (the engine derives its objects from the log; clients cannot write
  them), ``review`` (create only, not stored), ``figures`` (get and list only), ``single`` (no deletecollection), and
  the names of subresources: ``status``, ``scale`` and those of ``PARTS``.

A ``group`` line sets the apiVersion and the type package of the rows after it.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from events import shapes

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
configmaps ConfigMap cm - template -
endpoints Endpoints ep - - -
events Event ev - - -
limitranges LimitRange limits - template -
namespaces Namespace ns - namespace global,single,status,namespaces.finalize
nodes Node no - - global,status
persistentvolumeclaims PersistentVolumeClaim pvc - template status
persistentvolumes PersistentVolume pv - template global,status
pods Pod po all template status,pods.log,pods.exec,pods.eviction
podtemplates PodTemplate - - - -
replicationcontrollers ReplicationController rc all - status,scale
resourcequotas ResourceQuota quota - template status
secrets Secret - - template -
serviceaccounts ServiceAccount sa - template serviceaccounts.token
services Service svc all template status
group apps/v1 apps
controllerrevisions ControllerRevision - - - -
daemonsets DaemonSet ds all template status
deployments Deployment deploy all template status,scale
replicasets ReplicaSet rs all template status,scale
statefulsets StatefulSet sts all template status,scale
group events.k8s.io/v1 events
events Event ev - - -
group authentication.k8s.io/v1 authentication
selfsubjectreviews SelfSubjectReview - - - global,review
tokenreviews TokenReview - - - global,review
group authorization.k8s.io/v1 authorization
localsubjectaccessreviews LocalSubjectAccessReview - - - review
selfsubjectaccessreviews SelfSubjectAccessReview - - - global,review
selfsubjectrulesreviews SelfSubjectRulesReview - - - global,review
subjectaccessreviews SubjectAccessReview - - - global,review
group autoscaling/v2 autoscalingv2
horizontalpodautoscalers HorizontalPodAutoscaler hpa all template status
group autoscaling/v1 autoscaling
horizontalpodautoscalers HorizontalPodAutoscaler hpa all - status
group batch/v1 batch
cronjobs CronJob cj all template status
jobs Job - all template status
group certificates.k8s.io/v1 certificates
certificatesigningrequests CertificateSigningRequest csr - - global,status,certificatesigningrequests.approval
group networking.k8s.io/v1 networking
ingressclasses IngressClass - - template global
ingresses Ingress ing - template status
networkpolicies NetworkPolicy netpol - template -
servicecidrs ServiceCIDR - - - global,status
group policy/v1 policy
poddisruptionbudgets PodDisruptionBudget pdb - template status
group rbac.authorization.k8s.io/v1 rbac
clusterrolebindings ClusterRoleBinding - - template global
clusterroles ClusterRole - - template global
rolebindings RoleBinding - - template -
roles Role - - template -
group storage.k8s.io/v1 storage
csidrivers CSIDriver - - - global
csinodes CSINode - - - global
csistoragecapacities CSIStorageCapacity - - - -
storageclasses StorageClass sc - template global
volumeattachments VolumeAttachment - - - global,status
volumeattributesclasses VolumeAttributesClass vac - template global
group admissionregistration.k8s.io/v1 admissionregistration
mutatingwebhookconfigurations MutatingWebhookConfiguration - api-extensions - global
validatingadmissionpolicies ValidatingAdmissionPolicy - api-extensions - global,status
validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding - api-extensions - global
validatingwebhookconfigurations ValidatingWebhookConfiguration - api-extensions - global
group apiextensions.k8s.io/v1 apiextensions
customresourcedefinitions CustomResourceDefinition crd,crds api-extensions template global,status
group scheduling.k8s.io/v1 scheduling
priorityclasses PriorityClass pc - template global
group coordination.k8s.io/v1 coordination
leases Lease - - - -
group node.k8s.io/v1 node
runtimeclasses RuntimeClass - - template global
group discovery.k8s.io/v1 discovery
endpointslices EndpointSlice - - - -
group resource.k8s.io/v1 resource
deviceclasses DeviceClass - - template global
resourceclaims ResourceClaim - - template status
resourceclaimtemplates ResourceClaimTemplate - - template -
resourceslices ResourceSlice - - - global
group flowcontrol.apiserver.k8s.io/v1 flowcontrol
flowschemas FlowSchema - - template global,status
prioritylevelconfigurations PriorityLevelConfiguration - - template global,status
group metrics.k8s.io/v1beta1 metrics
nodes NodeMetrics - - - global,figures
pods PodMetrics - - - figures
"""

KARMADA: Final = """
group apps.karmada.io/v1alpha1 apps.karmada
workloadrebalancers WorkloadRebalancer - - rebalancer global,status
group cluster.karmada.io/v1alpha1 cluster.karmada
clusters Cluster - - cluster global,status,clusters.proxy
group autoscaling.karmada.io/v1alpha1 autoscaling.karmada
cronfederatedhpas CronFederatedHPA cronfhpa karmada-io configuration status
federatedhpas FederatedHPA fhpa karmada-io configuration status
group config.karmada.io/v1alpha1 config.karmada
resourceinterpretercustomizations ResourceInterpreterCustomization ric karmada-io configuration global
group networking.karmada.io/v1alpha1 networking.karmada
multiclusteringresses MultiClusterIngress mci karmada-io configuration status
multiclusterservices MultiClusterService mcs karmada-io configuration status
group policy.karmada.io/v1alpha1 policy.karmada
clusteroverridepolicies ClusterOverridePolicy cop karmada-io configuration global
clusterpropagationpolicies ClusterPropagationPolicy cpp karmada-io policy global
clustertaintpolicies ClusterTaintPolicy - - configuration global
federatedresourcequotas FederatedResourceQuota - karmada-io configuration status
overridepolicies OverridePolicy op karmada-io configuration -
propagationpolicies PropagationPolicy pp karmada-io policy -
group remedy.karmada.io/v1alpha1 remedy.karmada
remedies Remedy - karmada-io configuration global
group search.karmada.io/v1alpha1 search.karmada
proxying Proxying - - - global,figures,proxying.proxy
resourceregistries ResourceRegistry - - configuration global,status
search Search - - - global,figures
group work.karmada.io/v1alpha2 work.karmada
clusterresourcebindings ClusterResourceBinding crb karmada-io - derived,global,status
resourcebindings ResourceBinding rb karmada-io - derived,status
group work.karmada.io/v1alpha1 work.karmada
works Work wk karmada-io - derived,status
group config.reballast.io/v1alpha1 config.reballast
replicainterpreters ReplicaInterpreter ri - interpreter global
"""


class Row(Struct, frozen=True, kw_only=True):
    """One kind; the name of its type is ``package`` and ``kind``, joined by a dot."""

    api_version: str
    package: str
    plural: str
    kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    route: shapes.Route | None
    traits: tuple[str, ...]

    @property
    def namespaced(self) -> bool:
        return "global" not in self.traits


def rows(table: str) -> Iterator[Row]:
    """Yield the rows of a table; raises msgspec.ValidationError for an unknown route."""
    api_version = package = ""
    for line in table.strip().splitlines():
        if line.startswith("group "):
            _word, api_version, package = line.split()
            continue
        plural, kind, short_names, categories, route, traits = line.split()
        yield Row(
            api_version=api_version,
            package=package,
            plural=plural,
            kind=kind,
            short_names=_words(short_names),
            categories=_words(categories),
            route=None if route == "-" else msgspec.convert(route, shapes.Route),
            traits=_words(traits),
        )


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))
