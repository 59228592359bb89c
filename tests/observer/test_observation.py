"""Changes of observed objects: what is recorded of them, and which are recorded already."""

import msgspec

from engine.observer.observation import Observations
from events import observations
from events.json_values import Json
from events.kube_objects import KubeObject


def test_values_of_secrets_never_enter_the_log() -> None:
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"k":"aHVudGVyMg=="}}'}
    secret: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "7",
            "annotations": {**last_applied, "a": "b"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "data": {"k": "aHVudGVyMg=="},
        "stringData": {"k": "hunter2"},
    }
    seen = Observations().changed(KubeObject(secret), is_gone=False)
    assert isinstance(seen, observations.ObjectObserved)
    text = bytes(seen.manifest).decode()
    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text
    manifest = msgspec.json.decode(text)
    assert manifest["data"]["k"].startswith("sha256:")
    assert manifest["metadata"]["annotations"] == {"a": "b"}
    assert "managedFields" not in manifest["metadata"]


def test_late_deletion_of_an_earlier_object_is_ignored() -> None:
    seen = Observations()
    assert seen.changed(KubeObject(config_map("new", 9)), is_gone=False)
    assert seen.changed(KubeObject(config_map("old", 10)), is_gone=True) is None
    assert seen.changed(KubeObject(config_map("new", 11)), is_gone=True)


def test_object_with_a_huge_version_is_ignored() -> None:
    value = KubeObject(config_map("u", 9)).with_metadata({"resourceVersion": "9" * 5_000})
    assert Observations().changed(value, is_gone=False) is None


def test_list_gives_deletions_first_since_a_killed_observer_continues_from_its_newest_version() -> None:
    seen = Observations()
    first = [
        KubeObject({**config_map(name, version), "apiVersion": "v1"})
        for name, version in (("a", 1), ("b", 2))
    ]
    assert len([*seen.listed("", "ConfigMap", first[:1])]) == 1
    later = first[1].with_metadata({"name": "t"})
    vanished, new = seen.listed("", "ConfigMap", [later])
    assert isinstance(vanished, observations.ObjectVanished)
    assert isinstance(new, observations.ObjectObserved)


def config_map(uid: str, version: int) -> Json:
    metadata = {"name": "s", "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "metadata": metadata}
