"""Validation of Secrets and ConfigMaps."""

import base64

import pytest

from engine.kubeapi.admission.rules import core
from events.kube_objects import KubeObject

_INTO_OBJECT = "into Go value of type map[string]interface {}"


def _errors(type_name: str, data: dict[str, str]) -> list[tuple[str, str]]:
    """Return field and message of each error of a Secret with this data."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    secret = KubeObject({"type": type_name, "data": encoded})
    return [(cause.field, cause.message) for cause in core.secret(secret, None)]


@pytest.mark.parametrize("text", ["{}", '{"auths": {}}', "null"])
def test_docker_configuration_is_a_json_object(text: str) -> None:
    assert _errors("kubernetes.io/dockerconfigjson", {".dockerconfigjson": text}) == []


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("[]", f"json: cannot unmarshal array {_INTO_OBJECT}"),
        ('"user:password"', f"json: cannot unmarshal string {_INTO_OBJECT}"),
        ("1", f"json: cannot unmarshal number {_INTO_OBJECT}"),
        ("false", f"json: cannot unmarshal bool {_INTO_OBJECT}"),
        ("user:password", "invalid character 'u' looking for beginning of value"),
        ("", "unexpected end of JSON input"),
    ],
)
@pytest.mark.parametrize(
    ("type_name", "key"),
    [("kubernetes.io/dockerconfigjson", ".dockerconfigjson"), ("kubernetes.io/dockercfg", ".dockercfg")],
)
def test_docker_configuration_of_another_type_is_refused_without_its_value(
    type_name: str, key: str, text: str, detail: str
) -> None:
    message = f'Invalid value: "<secret contents redacted>": {detail}'
    assert _errors(type_name, {key: text}) == [(f"data[{key}]", message)]


@pytest.mark.parametrize("data", [{}, {"ssh-privatekey": ""}])
def test_private_key_for_ssh_is_required(data: dict[str, str]) -> None:
    assert _errors("kubernetes.io/ssh-auth", {"ssh-privatekey": "key"}) == []
    assert _errors("kubernetes.io/ssh-auth", data) == [("data[ssh-privatekey]", "Required value")]


def test_certificate_and_key_for_tls_may_be_empty() -> None:
    assert _errors("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}) == []


def test_values_have_one_mebibyte_together() -> None:
    half = "x" * 512 * 1024
    assert _errors("Opaque", {"a": half, "b": half}) == []
    too_long = [("data", "Too long: may not be more than 1048576 bytes")]
    assert _errors("Opaque", {"a": half, "b": half, "c": "x"}) == too_long


def test_texts_and_binary_values_of_a_config_map_have_one_mebibyte_together() -> None:
    binary = base64.b64encode(b"x" * 512 * 1024).decode()
    whole = KubeObject({"data": {"a": "ü" * 256 * 1024}, "binaryData": {"b": binary}})
    assert list(core.config_map(whole, None)) == []
    more = whole.with_fields({"data": {**whole.object_at("data"), "c": "x"}})
    assert [cause.field for cause in core.config_map(more, None)] == ["[]"]


def test_keys_of_a_config_map_are_file_names_and_unique() -> None:
    config = KubeObject({"data": {"a/b": "x", "both": "x"}, "binaryData": {"c/d": "eA==", "both": "eA=="}})
    fields = [cause.field for cause in core.config_map(config, None)]
    assert fields == ["data[a/b]", "data[both]", "binaryData[c/d]"]
