"""Overriders: each kind and operator, their order, and faults."""

import contextlib
import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.patching.patches import at
from engine.overrides import application
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import config_map, manifest


def pods(*names: str, **more: object) -> Json:
    return {"containers": [{"name": name, "image": f"{name}:1"} for name in names], **more}


def workload(kind: str = "Deployment", /, **metadata: object) -> Json:
    spec = pods("web", "side", initContainers=[{"name": "init", "image": "init:1"}])
    workload_spec: Json = spec if kind == "Pod" else {"replicas": 2, "template": {"spec": spec}}
    return manifest("v1", kind, "web", metadata=metadata, spec=workload_spec)


def applied(value: Json, **overriders: object) -> Json:
    """Return the object after one rule of a policy's manifest; asserts that the input is unchanged."""
    before = copy.deepcopy(value)
    under = application.OverrideApplication(KubeObject(value))
    try:
        under.apply(application.read(msgspec.json.encode(overriders)))
    finally:
        assert value == before
    return under.value.document


def fault(value: Json, **overriders: object) -> str:
    with pytest.raises(application.OverrideError) as raised:
        applied(value, **overriders)
    return str(raised.value)


def images_of(value: Json) -> list[object]:
    at_pods = "/spec" if value["kind"] == "Pod" else "/spec/template/spec"
    paths = [f"{at_pods}/{part}/image" for part in ("initContainers/0", "containers/0", "containers/1")]
    return [at(value, path) for path in paths]


# --- images ---

_TAG_2 = {"component": "Tag", "operator": "replace", "value": "2"}


@pytest.mark.parametrize("kind", ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_all_images_of_known_kinds_are_overridden(kind: str) -> None:
    assert images_of(applied(workload(kind), imageOverrider=[_TAG_2])) == ["init:2", "web:2", "side:2"]


def test_other_kinds_need_a_predicate_for_images() -> None:
    flow = workload("Flow")
    assert applied(flow, imageOverrider=[_TAG_2]) == flow
    predicate = {"path": "/spec/template/spec/containers/1/image"}
    assert images_of(applied(flow, imageOverrider=[{**_TAG_2, "predicate": predicate}])) == [
        "init:1",
        "web:1",
        "side:2",
    ]


def test_image_overriders_are_applied_in_sequence() -> None:
    mirror = {"component": "Registry", "operator": "add", "value": "mirror.example"}
    port = {"component": "Registry", "operator": "add", "value": ":5000"}
    images = images_of(applied(workload(), imageOverrider=[mirror, port, _TAG_2]))
    assert images[1] == "mirror.example:5000/web:2"


def test_invalid_image_is_a_fault() -> None:
    broken = applied(
        workload(), plaintext=[{"path": "/spec/template/spec/containers/1/image", "operator": "remove"}]
    )
    assert fault(broken, imageOverrider=[_TAG_2]).startswith("imageOverrider[0]: ")
    assert "is not a string" in fault(broken, imageOverrider=[_TAG_2])
    nowhere = {**_TAG_2, "predicate": {"path": "/spec/nowhere/image"}}
    assert fault(workload(), imageOverrider=[_TAG_2, nowhere]).startswith("imageOverrider[1]: ")
    relative = {**_TAG_2, "predicate": {"path": "spec"}}
    assert fault(workload(), imageOverrider=[relative]).startswith("imageOverrider[0].predicate.path: ")


# --- commands and arguments ---


@pytest.mark.parametrize("part", ["command", "args"])
@pytest.mark.parametrize(
    ("old", "operator", "value", "new"),
    [
        (None, "add", ["-v"], ["-v"]),
        (["run"], "add", ["-v", "-v"], ["run", "-v", "-v"]),
        (["run", "-v", "-q", "-v"], "remove", ["-v", "-x"], ["run", "-q"]),
        (["run"], "remove", ["run"], []),
        (["run"], "add", [], ["run"]),
        (["run"], "remove", [], ["run"]),
    ],
)
def test_command_and_args_are_added_and_removed(
    part: str, old: list[str] | None, operator: str, value: list[str], new: list[str]
) -> None:
    before = workload()
    path = f"/spec/template/spec/containers/0/{part}"
    if old is not None:
        before = applied(before, plaintext=[{"path": path, "operator": "add", "value": old}])
    change = {"containerName": "web", "operator": operator, "value": value}
    after = applied(before, **{f"{part}Overrider": [change]})
    assert at(after, path) == new
    assert at(after, "/spec/template/spec/containers/1") == {"name": "side", "image": "side:1"}


def test_missing_container_is_ignored() -> None:
    change = {"containerName": "other", "operator": "add", "value": ["a"]}
    assert applied(workload(), commandOverrider=[change], argsOverrider=[change]) == workload()


# --- labels and annotations ---


def _of(part: str, marks: dict[str, str] | None) -> dict[str, object]:
    return {} if marks is None else {part: marks}


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("old", "operator", "value", "new"),
    [
        (None, "add", {"a/b": "1"}, {"a/b": "1"}),
        ({"a": "1"}, "add", {"a": "2", "b": "3"}, {"a": "2", "b": "3"}),
        ({"a": "1"}, "replace", {"a": "2", "b": "3"}, {"a": "2"}),
        ({"a": "1", "b": "2"}, "remove", {"a": "", "c": ""}, {"b": "2"}),
        ({"a": "1"}, "remove", {"a": "other"}, {}),
        (None, "replace", {"a": "1"}, None),
        (None, "remove", {"a": "1"}, None),
    ],
)
def test_labels_and_annotations_are_added_replaced_and_removed(
    part: str, old: dict[str, str] | None, operator: str, value: dict[str, str], new: dict[str, str] | None
) -> None:
    before = workload("Deployment", **_of(part, old))
    after = applied(before, **{f"{part}Overrider": [{"operator": operator, "value": value}]})
    assert after == workload("Deployment", **_of(part, new))


# --- embedded documents ---


def config(text: str) -> Json:
    return config_map("c", app=text)


@pytest.mark.parametrize(
    ("form", "operator", "path", "value", "new"),
    [
        ("json", "add", "/b", [1, None], '{"a":1,"b":[1,null]}'),
        ("json", "replace", "/a", "x", '{"a":"x"}'),
        ("json", "remove", "/a", None, "{}"),
        ("yaml", "add", "/list/-", "no", "a: 1\nlist:\n- x\n- 'no'\n"),
        ("yaml", "replace", "/list/0", {"b": True}, "a: 1\nlist:\n- b: true\n"),
        ("yaml", "remove", "/list", None, "a: 1\n"),
    ],
)
def test_text_in_a_field_is_patched(form: str, operator: str, path: str, value: object, new: str) -> None:
    text = {"json": '{"a": 1}', "yaml": "list: [x]\na: 1  # words\n"}[form]
    patch = {"subPath": path, "operator": operator, "value": value}
    after = applied(config(text), fieldOverrider=[{"fieldPath": "/data/app", form: [patch]}])
    assert at(after, "/data/app") == new


@pytest.mark.parametrize(
    ("text", "form", "path"),
    [
        ("{", "json", "/data/app"),
        ("a: [", "yaml", "/data/app"),
        ("a: 1\n---\nb: 2\n", "yaml", "/data/app"),
        ("{}", "json", "/data/nowhere"),
        ("{}", "json", "/data"),
        ("{}", "yaml", "/data/app"),
    ],
)
def test_unpatchable_field_is_a_fault(text: str, form: str, path: str) -> None:
    patch = {"subPath": "/a/b", "operator": "replace", "value": 1}
    message = fault(config(text), fieldOverrider=[{"fieldPath": path, form: [patch]}])
    assert message.startswith("fieldOverrider[0]")


# --- plaintext ---


@pytest.mark.parametrize(
    ("patch", "path", "new"),
    [
        ({"operator": "add", "path": "/spec/paused", "value": True}, "/spec/paused", True),
        ({"operator": "add", "path": "/spec/paused"}, "/spec/paused", None),
        ({"operator": "replace", "path": "/spec/replicas", "value": 7}, "/spec/replicas", 7),
        (
            {"operator": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "n"}},
            "/spec/template/spec/containers/1/name",
            "web",
        ),
        ({"operator": "remove", "path": "/metadata/labels/a~1b"}, "/metadata/labels", {"c~d": "2"}),
        (
            {"operator": "replace", "path": "/metadata/labels/c~0d", "value": "3"},
            "/metadata/labels/c~0d",
            "3",
        ),
    ],
)
def test_plaintext_is_a_json_patch(patch: Json, path: str, new: object) -> None:
    after = applied(workload(labels={"a/b": "1", "c~d": "2"}), plaintext=[patch])
    assert at(after, path) == new


@pytest.mark.parametrize(
    "patch",
    [
        {"operator": "remove", "path": "/spec/nowhere"},
        {"operator": "replace", "path": "/spec/nowhere", "value": 1},
        {"operator": "add", "path": "/spec/nowhere/deeper", "value": 1},
        {"operator": "add", "path": "/spec/template/spec/containers/9", "value": 1},
        {"operator": "replace", "path": "spec", "value": 1},
        {"operator": "replace", "path": "", "value": []},
    ],
)
def test_inapplicable_patch_is_a_fault(patch: Json) -> None:
    assert fault(workload(), plaintext=[patch]).startswith("plaintext: ")


@pytest.mark.parametrize("path", ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"])
def test_override_of_the_identity_is_a_fault(path: str) -> None:
    field = path[1:].replace("/", ".")
    for patch in ({"operator": "replace", "value": "other"}, {"operator": "remove"}):
        reason = fault(workload(namespace="shop"), plaintext=[{"path": path, **patch}])
        assert reason == f"plaintext: changes {field}, which identifies the object"


def test_malformed_overrider_is_a_fault() -> None:
    malformed: list[Json] = [
        {"plaintext": 1},
        {"imageOverrider": [{}]},
        {"labelsOverrider": [{"operator": 1}]},
    ]
    for wrong in malformed:
        assert fault(workload(), **wrong).startswith("overriders: ")


# --- order ---


def test_kinds_of_overriders_have_a_fixed_order() -> None:
    everything: Json = {
        "plaintext": [{"path": "/metadata/labels", "operator": "replace", "value": {"last": "plaintext"}}],
        "labelsOverrider": [{"operator": "add", "value": {"first": "labels"}}],
        "imageOverrider": [_TAG_2],
    }
    after = applied(workload(), **everything)
    assert at(after, "/metadata/labels") == {"last": "plaintext"}
    assert images_of(after)[1] == "web:2"


_NAMES = st.sampled_from(["a", "b", "c"])
_MARKS = st.fixed_dictionaries(
    {
        "operator": st.sampled_from(["add", "replace", "remove"]),
        "value": st.dictionaries(_NAMES, st.sampled_from(["1", "2"]), max_size=3),
    }
)


@given(st.dictionaries(_NAMES, st.just("0")), st.lists(_MARKS, max_size=4))
def test_label_overriders_follow_the_model_and_are_idempotent(
    old: dict[str, str], changes: list[dict[str, object]]
) -> None:
    model = dict(old)
    before = workload(labels=old)
    for change in changes:
        value: dict[str, str] = msgspec.convert(change["value"], dict[str, str])
        for name, mark in value.items():
            if change["operator"] == "remove":
                model.pop(name, None)
            elif change["operator"] == "add" or name in model:
                model[name] = mark
        once = applied(before, labelsOverrider=[change])
        assert applied(once, labelsOverrider=[change]) == once
        before = once
    assert at(before, "/metadata/labels") == model
    assert applied(workload(labels=old), labelsOverrider=changes) == before


# --- arbitrary overriders ---

_PATHS = st.sampled_from(
    [
        "",
        "/",
        "/a",
        "/metadata",
        "/metadata/labels/a",
        "/spec/template/spec/containers/0/image",
        "/data/app",
        "a",
    ]
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(["", "a", "nginx:1", "{", "a: [b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=4,
)
_OPERATORS = st.sampled_from(["add", "replace", "remove", "other"])
_WORDS: dict[str, st.SearchStrategy[Any]] = {
    "containerName": st.sampled_from(["web", ""]),
    "operator": _OPERATORS,
    "value": st.lists(_NAMES, max_size=2),
}
_SUB_PATCHES: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries({"subPath": _PATHS, "operator": _OPERATORS}, optional={"value": _VALUES}),
    max_size=2,
)
_ITEMS: dict[str, st.SearchStrategy[Any]] = {
    "plaintext": st.fixed_dictionaries({"path": _PATHS, "operator": _OPERATORS}, optional={"value": _VALUES}),
    "imageOverrider": st.fixed_dictionaries(
        {"component": st.sampled_from(["Registry", "Repository", "Tag"]), "operator": _OPERATORS},
        optional={"value": _NAMES, "predicate": st.fixed_dictionaries({"path": _PATHS})},
    ),
    "commandOverrider": st.fixed_dictionaries(_WORDS),
    "argsOverrider": st.fixed_dictionaries(_WORDS),
    "labelsOverrider": _MARKS,
    "annotationsOverrider": _MARKS,
    "fieldOverrider": st.fixed_dictionaries(
        {"fieldPath": _PATHS}, optional={"json": _SUB_PATCHES, "yaml": _SUB_PATCHES}
    ),
}
_RULES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={name: st.lists(item, max_size=2) for name, item in _ITEMS.items()}
)
_STRANGE: list[Json] = [
    {},
    {"kind": "Pod", "spec": []},
    {"kind": "Deployment", "metadata": 1, "spec": {"template": {"spec": {"containers": [1, {"args": 2}]}}}},
    workload(labels=[]),
    config("a: {b: [1]}"),
    workload("Pod"),
]


@given(st.sampled_from(_STRANGE), st.lists(_RULES, max_size=3))
def test_arbitrary_overriders_give_an_object_or_a_fault(value: Json, rules: list[Json]) -> None:
    before = copy.deepcopy(value)
    under = application.OverrideApplication(KubeObject(value))
    with contextlib.suppress(application.OverrideError):
        for rule in rules:
            under.apply(application.read(msgspec.json.encode(rule)))
        assert isinstance(msgspec.json.decode(msgspec.json.encode(under.value.document)), dict)
    assert value == before


def test_excessive_growth_of_an_object_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    many = workload("Pod")
    many["spec"] = pods(*["web"] * 3_000)
    words = {"containerName": "web", "operator": "add", "value": ["v" * 2_000]}
    assert fault(many, argsOverrider=[words]) == "argsOverrider[0]: is too much for one object"
    monkeypatch.setattr(application, "COST_MAX", 100_000)
    assert fault(many, argsOverrider=[{**words, "value": ["v"]}] * 50).endswith("is too much for one object")
    marks = {"operator": "add", "value": {"a": "b"}}
    labelled = workload(labels={str(index): "" for index in range(5_000)})
    assert fault(labelled, labelsOverrider=[marks] * 30).endswith("is too much for one object")
    document = {"fieldPath": "/data/app", "yaml": [{"subPath": "/c", "operator": "add", "value": 1}]}
    long = config("a: " + "b" * 30_000)
    assert fault(long, fieldOverrider=[document] * 5) == "fieldOverrider[3]: is too much for one object"


def test_overlong_image_is_a_fault() -> None:
    endless = applied(
        workload(),
        plaintext=[
            {
                "path": "/spec/template/spec/containers/0/image",
                "operator": "replace",
                "value": "a-" * 400_000,
            }
        ],
    )
    assert "is not an image name" in fault(endless, imageOverrider=[_TAG_2])
