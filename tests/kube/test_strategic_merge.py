"""Strategic merge patches as users and ``kubectl set`` write them."""

import pytest

from engine.kubeapi.patching import strategic_merge
from engine.kubeapi.schema.types import parsing
from events.json_values import Json, list_at, object_at
from tests.builders.manifests import manifest

POD = parsing.named("core.Pod")


def _pod(**spec: object) -> Json:
    return manifest("v1", "Pod", "web", spec=spec)


def _spec(value: Json) -> Json:
    return object_at(value, "spec")


LIVE = _pod(
    containers=[{"name": "web", "image": "nginx:1"}, {"name": "side", "image": "busybox"}],
    tolerations=[{"key": "a", "operator": "Exists"}],
)


def test_image_is_set_by_container_name() -> None:
    patch: Json = {
        "spec": {
            "$setElementOrder/containers": [{"name": "web"}, {"name": "side"}],
            "containers": [{"name": "web", "image": "nginx:2"}],
        }
    }
    assert _spec(strategic_merge.patched(LIVE, patch, POD))["containers"] == [
        {"name": "web", "image": "nginx:2"},
        {"name": "side", "image": "busybox"},
    ]
    assert _spec(LIVE)["containers"] != _spec(strategic_merge.patched(LIVE, patch, POD))["containers"]


def test_item_is_deleted_and_list_replaced() -> None:
    deletion: Json = {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}
    assert _spec(strategic_merge.patched(LIVE, deletion, POD))["containers"] == [
        {"name": "web", "image": "nginx:1"}
    ]
    new: Json = {"name": "new", "image": "x"}
    for directive in ({"$patch": "replace"}, {"$patch": "replace", "name": "web", "image": "y"}):
        fresh: Json = {"spec": {"containers": [directive, new]}}
        assert _spec(strategic_merge.patched(LIVE, fresh, POD))["containers"] == [new]


def test_tolerations_are_atomic() -> None:
    patch: Json = {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}
    assert _spec(strategic_merge.patched(LIVE, patch, POD))["tolerations"] == [
        {"key": "b", "operator": "Exists"}
    ]


def test_finalizers_are_added_and_removed_individually() -> None:
    live: Json = {**LIVE, "metadata": {"name": "web", "finalizers": ["a", "b"]}}
    more = strategic_merge.patched(live, {"metadata": {"finalizers": ["c", "a"]}}, POD)
    assert sorted(map(str, list_at(more, "metadata", "finalizers"))) == [
        "a",
        "b",
        "c",
    ]
    less = strategic_merge.patched(live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD)
    assert object_at(less, "metadata")["finalizers"] == ["b"]


def test_map_is_replaced_or_emptied() -> None:
    live: Json = {**LIVE, "metadata": {"name": "web", "labels": {"a": "1", "b": "2"}}}
    fresh: Json = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
    assert object_at(strategic_merge.patched(live, fresh, POD), "metadata")["labels"] == {"c": "3"}
    empty: Json = {"metadata": {"labels": {"$patch": "delete"}}}
    assert object_at(strategic_merge.patched(live, empty, POD), "metadata")["labels"] == {}


def test_retain_keys_drops_other_keys() -> None:
    volume: Json = {"name": "v", "emptyDir": {}}
    live = _pod(volumes=[volume])
    patch: Json = {
        "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}
    }
    assert _spec(strategic_merge.patched(live, patch, POD))["volumes"] == [
        {"name": "v", "configMap": {"name": "c"}}
    ]


MISTAKES: list[tuple[Json, str]] = [
    ({"containers": [{"image": "x"}]}, "does not contain declared merge key: name"),
    ({"containers": [{"$patch": "delete"}]}, "does not contain declared merge key"),
    ({"containers": [{"name": "web", "$patch": "twist"}]}, "unknown patch type: twist"),
    ({"containers": [{"name": "web", "$patch": "merge"}]}, "unknown patch type: merge"),
    ({"containers": [{"name": "web", "$patch": None}]}, "unknown patch type"),
    ({"containers": ["web"]}, "is not an object"),
    ({"$patch": "twist"}, "unknown patch type"),
    ({"$setElementOrder/containers": "web"}, "is not a list"),
    ({"$setElementOrder/tolerations": []}, "a list that is not merged"),
    ({"$retainKeys": ["volumes"], "containers": []}, "does not retain"),
]


@pytest.mark.parametrize(("spec", "words"), MISTAKES)
def test_invalid_patch_is_reported(spec: Json, words: str) -> None:
    with pytest.raises(strategic_merge.StrategicMergeError, match=words):
        strategic_merge.patched(LIVE, {"spec": spec}, POD)


def test_karmada_kinds_do_not_accept_strategic_merge_patches() -> None:
    assert strategic_merge.takes(POD)
    assert not strategic_merge.takes(parsing.named("policy.karmada.PropagationPolicy"))
