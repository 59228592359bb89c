"""Type errors of values, reported in the words of Kubernetes' own decoder."""

import pytest

from engine.kubeapi.schema import resources, type_errors
from events.json_values import Json
from tests.builders.manifests import manifest
from tests.kube.oracle.objects import deployment, pod_template

PLURALS = {
    "CertificateSigningRequest": "certificatesigningrequests",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Secret": "secrets",
}


def words(value: Json) -> str:
    group, _slash, version = str(value["apiVersion"]).rpartition("/")
    resource = resources.built_in().resource(group, version, PLURALS[str(value["kind"])])
    assert resource
    fault = type_errors.mistyped(value, resource.schema)
    return "" if fault is None else fault.message


def of_core(kind: str, **fields: object) -> Json:
    return manifest("v1", kind, "one") | fields


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (of_core("ConfigMap", data={"a": "1"}, immutable=True), ""),
        (of_core("ConfigMap", data=None, immutable=None), ""),
        (of_core("ConfigMap", data={"a": 1}), "number into Go struct field ConfigMap.data of type string"),
        (
            of_core("ConfigMap", data=[]),
            "array into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            of_core("ConfigMap", immutable="yes"),
            "string into Go struct field ConfigMap.immutable of type bool",
        ),
        (
            of_core("ConfigMap", metadata="x"),
            "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
        (
            deployment("one", replicas=1.5),
            "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment("one", template={**pod_template("one"), "spec": {"containers": [{"command": [1]}]}}),
            "number into Go struct field Container.spec.template.spec.containers.command of type string",
        ),
        (
            deployment("one", replicas=3_000_000_000),
            "number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {
                "apiVersion": "certificates.k8s.io/v1",
                "kind": "CertificateSigningRequest",
                "spec": {"expirationSeconds": 2**31},
            },
            (
                "number 2147483648 into Go struct field CertificateSigningRequestSpec.spec.expirationSeconds"
                " of type int32"
            ),
        ),
        (
            deployment("one", template={"spec": {"terminationGracePeriodSeconds": 2**63}}),
            (
                "number 9223372036854775808 into Go struct field"
                " PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64"
            ),
        ),
        (deployment("one", minReadySeconds=2**31 - 1), ""),
        (deployment("one", template={"spec": {"terminationGracePeriodSeconds": 2**40}}), ""),
    ],
)
def test_first_value_of_a_wrong_type_is_reported(value: Json, expected: str) -> None:
    assert words(value).removeprefix("json: cannot unmarshal ") == expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", -1),
        ("MQ==", -1),
        ("MTIz\nNDU2\r\n", -1),
        ("not base64!", 3),
        ("MQ", 0),
        ("MTIzMQ=", 7),
        ("M=", 1),
        ("MQ=a", 2),
        ("MQ==MQ==", 4),
    ],
)
def test_secret_data_must_be_base64_and_may_have_line_breaks(text: str, position: int) -> None:
    expected = "" if position < 0 else f"illegal base64 data at input byte {position}"
    assert words(of_core("Secret", data={"a": text})) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("1.5Gi", ""),
        (" 100m ", ""),
        ("1e3", ""),
        (2, ""),
        ("-1", ""),
        ("x", "quantities must match the regular expression"),
        (True, "quantities must match the regular expression"),
        ("1kk", "unable to parse quantity's suffix"),
    ],
)
def test_quantities_are_validated(amount: object, expected: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": amount}}}
    message = words(deployment("one", template={"spec": {"containers": [container]}}))
    assert message.startswith(expected)
    assert bool(message) == bool(expected)


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("2026-01-02T03:04:05Z", ""),
        ("2026-01-02T03:04:05.678+01:00", ""),
        ("yesterday", 'cannot parse "yesterday" as "2006"'),
        ("2026-01-02 03:04:05Z", 'cannot parse " 03:04:05Z" as "T"'),
        ("2026-01-02T03:04:05", 'cannot parse "" as "Z07:00"'),
        ("2026-13-02T03:04:05Z", "out of range"),
    ],
)
def test_instants_are_validated(instant: str, expected: str) -> None:
    message = words(of_core("ConfigMap", metadata={"creationTimestamp": instant}))
    assert message.endswith(expected)
    assert bool(message) == bool(expected)
