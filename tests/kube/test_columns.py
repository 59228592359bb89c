"""Table rows of built-in kinds equal those of a real API server (``kubectl get -o wide``)."""

import pytest

from engine.kubeapi.schema import resources
from engine.kubeapi.tables import tables
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject

NOW_MS = 1_767_225_600_000
CREATED = "2025-12-31T23:59:53Z"
CONTAINERS: Json = {"containers": [{"name": "c", "image": "i"}]}

ROWS: dict[str, tuple[str, Json, dict[str, object]]] = {
    "unclaimed volume": (
        "/v1/persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "nope",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Available"},
        },
        {
            "Capacity": "1Gi",
            "Access Modes": "RWO,RWX",
            "Reclaim Policy": "Retain",
            "Status": "Available",
            "Claim": "",
            "StorageClass": "nope",
            "VolumeAttributesClass": "<unset>",
            "Reason": "",
            "Age": "7s",
            "VolumeMode": "Filesystem",
        },
    ),
    "bound claim": (
        "/v1/persistentvolumeclaims",
        {
            "spec": {"volumeName": "pv", "storageClassName": "fast"},
            "status": {
                "phase": "Bound",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOncePod"],
            },
        },
        {
            "Status": "Bound",
            "Volume": "pv",
            "Capacity": "1Gi",
            "Access Modes": "RWOP",
            "StorageClass": "fast",
            "VolumeAttributesClass": "<unset>",
            "Age": "7s",
            "VolumeMode": "<unset>",
        },
    ),
    "terminating claim without a volume": (
        "/v1/persistentvolumeclaims",
        {
            "metadata": {
                "deletionTimestamp": CREATED,
                "annotations": {"volume.beta.kubernetes.io/storage-class": "slow"},
            },
            "spec": {"storageClassName": "fast"},
            "status": {
                "phase": "Pending",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
            },
        },
        {
            "Status": "Terminating",
            "Volume": "",
            "Capacity": "",
            "Access Modes": "",
            "StorageClass": "slow",
            "VolumeAttributesClass": "<unset>",
            "Age": "7s",
            "VolumeMode": "<unset>",
        },
    ),
    "terminating volume": (
        "/v1/persistentvolumes",
        {
            "metadata": {"deletionTimestamp": CREATED},
            "spec": {"claimRef": {"namespace": "shop", "name": "data"}},
            "status": {"phase": "Bound"},
        },
        {
            "Capacity": "0",
            "Access Modes": "",
            "Reclaim Policy": "",
            "Status": "Terminating",
            "Claim": "shop/data",
            "StorageClass": "",
            "VolumeAttributesClass": "<unset>",
            "Reason": "",
            "Age": "7s",
            "VolumeMode": "<unset>",
        },
    ),
    "csi node": (
        "storage.k8s.io/v1/csinodes",
        {"spec": {"drivers": [{"name": "a", "nodeID": "n"}, {"name": "b", "nodeID": "n"}]}},
        {"Drivers": 2, "Age": "7s"},
    ),
    "storage class": (
        "storage.k8s.io/v1/storageclasses",
        {"provisioner": "a.b/c", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
        {
            "Provisioner": "a.b/c",
            "ReclaimPolicy": "Delete",
            "VolumeBindingMode": "Immediate",
            "AllowVolumeExpansion": False,
            "Age": "7s",
        },
    ),
    "csi driver": (
        "storage.k8s.io/v1/csidrivers",
        {"spec": {}},
        {
            "AttachRequired": True,
            "PodInfoOnMount": False,
            "StorageCapacity": False,
            "TokenRequests": "<unset>",
            "RequiresRepublish": False,
            "Modes": "Persistent",
            "Age": "7s",
        },
    ),
    "resource quota": (
        "/v1/resourcequotas",
        {"status": {"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "0", "limits.cpu": "0"}}},
        {"Request": "pods: 0/5", "Limit": "limits.cpu: 0/2", "Age": "7s"},
    ),
    "limit range": ("/v1/limitranges", {}, {"Created At": CREATED}),
    "endpoints": (
        "/v1/endpoints",
        {
            "subsets": [
                {"addresses": [{"ip": f"1.2.3.{number}"} for number in range(5)], "ports": [{"port": 80}]}
            ]
        },
        {"Endpoints": "1.2.3.0:80,1.2.3.1:80,1.2.3.2:80 + 2 more...", "Age": "7s"},
    ),
    "endpoints with IPv6 addresses": (
        "/v1/endpoints",
        {
            "subsets": [
                {"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 443}]},
                {"addresses": [{"ip": "fd00::2"}]},
            ]
        },
        {"Endpoints": "[fd00::1]:80,[fd00::1]:443,fd00::2", "Age": "7s"},
    ),
    "endpoints that are not ready": (
        "/v1/endpoints",
        {"subsets": [{"notReadyAddresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]},
        {"Endpoints": "", "Age": "7s"},
    ),
    "empty endpoints": ("/v1/endpoints", {}, {"Endpoints": "<none>", "Age": "7s"}),
    "endpoint slice": (
        "discovery.k8s.io/v1/endpointslices",
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["1.2.3.4"]}]},
        {"AddressType": "IPv4", "Ports": "80", "Endpoints": "1.2.3.4", "Age": "7s"},
    ),
    "endpoint slice with named ports": (
        "discovery.k8s.io/v1/endpointslices",
        {"addressType": "IPv4", "ports": [{"name": "web"}, {"name": "dns", "port": 53}, {}]},
        {"AddressType": "IPv4", "Ports": "web,53,*", "Endpoints": "<unset>", "Age": "7s"},
    ),
    "empty endpoint slice": (
        "discovery.k8s.io/v1/endpointslices",
        {"addressType": "IPv4"},
        {"AddressType": "IPv4", "Ports": "<unset>", "Endpoints": "<unset>", "Age": "7s"},
    ),
    "replication controller": (
        "/v1/replicationcontrollers",
        {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": {"spec": CONTAINERS}}},
        {
            "Desired": 0,
            "Current": 0,
            "Ready": 0,
            "Age": "7s",
            "Containers": "c",
            "Images": "i",
            "Selector": "a=b",
        },
    ),
    "network policy": (
        "networking.k8s.io/v1/networkpolicies",
        {
            "spec": {
                "podSelector": {
                    "matchLabels": {"tier": "web", "c": "d"},
                    "matchExpressions": [
                        {"key": "zone", "operator": "In", "values": ["b", "a"]},
                        {"key": "app", "operator": "NotIn", "values": ["y", "x"]},
                        {"key": "old", "operator": "DoesNotExist"},
                        {"key": "new", "operator": "Exists"},
                    ],
                }
            }
        },
        {"Pod-Selector": "app notin (x,y),c=d,new,!old,tier=web,zone in (a,b)", "Age": "7s"},
    ),
    "network policy of all pods": (
        "networking.k8s.io/v1/networkpolicies",
        {"spec": {"podSelector": {}}},
        {"Pod-Selector": "<none>", "Age": "7s"},
    ),
    "pod template": (
        "/v1/podtemplates",
        {"template": {"metadata": {"labels": {"a": "e"}}, "spec": CONTAINERS}},
        {"Containers": "c", "Images": "i", "Pod Labels": "a=e"},
    ),
    "controller revision": (
        "apps/v1/controllerrevisions",
        {
            "revision": 1,
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ss", "controller": True}
                ]
            },
        },
        {"Controller": "statefulset.apps/ss", "Revision": 1, "Age": "7s"},
    ),
    "balanced service": (
        "/v1/services",
        {
            "spec": {
                "type": "LoadBalancer",
                "clusterIP": "10.0.0.1",
                "externalIPs": ["1.1.1.1"],
                "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
            },
            "status": {
                "loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "b"}, {"ip": "9.9.9.9"}]}
            },
        },
        {
            "Type": "LoadBalancer",
            "Cluster-IP": "10.0.0.1",
            "External-IP": "9.9.9.9,b,1.1.1.1",
            "Port(s)": "80:30080/TCP,53/UDP",
            "Age": "7s",
            "Selector": "<none>",
        },
    ),
    "ingress": (
        "networking.k8s.io/v1/ingresses",
        {
            "spec": {"rules": [{"host": host} for host in ("d", "a", "c", "b", "e")], "tls": [{}]},
            "status": {
                "loadBalancer": {"ingress": [{"hostname": "y"}, {"ip": "1.2.3.4"}, {"hostname": "y"}]}
            },
        },
        {
            "Class": "<none>",
            "Hosts": "d,a,c + 2 more...",
            "Address": "1.2.3.4,y",
            "Ports": "80, 443",
            "Age": "7s",
        },
    ),
    "ingress class": (
        "networking.k8s.io/v1/ingressclasses",
        {
            "spec": {
                "controller": "a.b/c",
                "parameters": {"apiGroup": "k8s.example", "kind": "P", "name": "x"},
            }
        },
        {"Controller": "a.b/c", "Parameters": "P.k8s.example/x", "Age": "7s"},
    ),
    "budget that allows no disruption": (
        "policy/v1/poddisruptionbudgets",
        {"spec": {"maxUnavailable": 0}, "status": {"disruptionsAllowed": 0}},
        {"Min Available": "N/A", "Max Unavailable": "0", "Allowed Disruptions": 0, "Age": "7s"},
    ),
    "cordoned node with roles": (
        "/v1/nodes",
        {
            "metadata": {
                "labels": {
                    "kubernetes.io/role": "edge",
                    "node-role.kubernetes.io/worker": "",
                    "node-role.kubernetes.io/": "",
                    "zone": "a",
                }
            },
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "Unknown"}],
                "addresses": [
                    {"type": "Hostname", "address": "n1"},
                    {"type": "ExternalIP", "address": "9.9.9.9"},
                ],
                "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Linux"},
            },
        },
        {
            "Status": "NotReady,SchedulingDisabled",
            "Roles": "edge,worker",
            "Age": "7s",
            "Version": "v1.36.2",
            "Internal-IP": "<none>",
            "External-IP": "9.9.9.9",
            "OS-Image": "Linux",
            "Kernel-Version": "<unknown>",
            "Container-Runtime": "<unknown>",
        },
    ),
    "admission policy": (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        {
            "spec": {
                "paramKind": {"apiVersion": "rules.example/v1", "kind": "Limit"},
                "validations": [{"expression": "true"}, {"expression": "false"}],
            }
        },
        {"Validations": 2, "ParamKind": "rules.example/v1/Limit", "Age": "7s"},
    ),
    "admission policy without parameters": (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        {"spec": {}},
        {"Validations": 0, "ParamKind": "<unset>", "Age": "7s"},
    ),
    "binding of an admission policy to a parameter": (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "limits", "paramRef": {"name": "small", "namespace": "shop"}}},
        {"PolicyName": "limits", "ParamRef": "shop/small", "Age": "7s"},
    ),
    "binding of an admission policy to a parameter in each namespace": (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "limits", "paramRef": {"name": "small"}}},
        {"PolicyName": "limits", "ParamRef": "*/small", "Age": "7s"},
    ),
    "binding of an admission policy": (
        "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"spec": {"policyName": "limits"}},
        {"PolicyName": "limits", "ParamRef": "<unset>", "Age": "7s"},
    ),
    "webhooks": (
        "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"webhooks": [{"name": "a"}, {"name": "b"}]},
        {"Webhooks": 2, "Age": "7s"},
    ),
}


@pytest.mark.parametrize(("path", "value", "row"), ROWS.values(), ids=ROWS)
def test_row_equals_that_of_a_real_server(path: str, value: Json, row: dict[str, object]) -> None:
    group, version, plural = path.split("/")
    resource = resources.control_plane().resource(group, version, plural)
    assert resource
    metadata = {"name": "one", "creationTimestamp": CREATED, **object_at(value, "metadata")}

    answer = tables.table(resource, [KubeObject({**value, "metadata": metadata})], NOW_MS, metadata={})

    names = [str(object_at(column)["name"]) for column in list_at(answer, "columnDefinitions")]
    cells = list_at(list_at(answer, "rows")[0], "cells")
    assert dict(zip(names, cells, strict=True)) == {"Name": "one", **row}


@pytest.mark.parametrize("prefix", ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"])
def test_default_storage_class_is_marked(prefix: str) -> None:
    resource = resources.control_plane().resource("storage.k8s.io", "v1", "storageclasses")
    assert resource
    annotations = {f"{prefix}/is-default-class": "true"}
    value: Json = {"metadata": {"name": "fast", "annotations": annotations}}

    answer = tables.table(resource, [KubeObject(value)], NOW_MS, metadata={})

    assert list_at(list_at(answer, "rows")[0], "cells")[0] == "fast (default)"
