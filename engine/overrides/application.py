"""Application of override policies to an object.

Overriders apply by kind in Karmada's order (image, command, args, labels, annotations, field, plaintext),
within a kind in listed order. Patches follow RFC 6902. The caller selects the policies; a rule is applied
completely, or fails with the field and the reason.
"""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypedDict

import msgspec
import yaml
from msgspec import Struct

from engine.kubeapi.patching import patches
from engine.objects import manifest_yaml
from engine.objects.manifest_limits import Budget, Limits, Unreadable
from engine.overrides import images
from events.json_values import Json, as_object, list_at, object_at
from events.kube_objects import KubeObject

_POD: Final = "/spec"
_POD_TEMPLATE: Final = "/spec/template/spec"
_POD_PATHS: Final = {
    "Pod": _POD,
    "ReplicaSet": _POD_TEMPLATE,
    "Deployment": _POD_TEMPLATE,
    "StatefulSet": _POD_TEMPLATE,
    "DaemonSet": _POD_TEMPLATE,
    "Job": _POD_TEMPLATE,
}
"""Path of the pod spec, by kind; image overriders for other kinds need a predicate."""

_EMBEDDED: Final = Limits(content_bytes_max=2**20, documents_max=1, depth_max=100, repeated_bytes_max=2**20)


_IDENTITY: Final = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))

COST_MAX: Final = 4 * 2**20
"""Maximum cost of all overriders of one object: containers, labels and arguments visited, plus characters of text."""


class OverrideError(Exception):
    """A rule that cannot be applied; ``field`` is the overrider's path in the rule, as ``imageOverrider[0]``."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Patch(Struct, frozen=True, kw_only=True, rename="camel"):
    """A JSON patch operation; an absent value is null."""

    path: str
    operator: str
    value: object = None


class SubPatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """A JSON patch operation on an embedded document."""

    sub_path: str
    operator: str
    value: object = None


class ImagePredicate(Struct, frozen=True, kw_only=True):
    """JSON pointer to the only image to change."""

    path: str = ""


class ImageOverrider(Struct, frozen=True, kw_only=True):
    """A change of one part of the image at ``predicate.path``; without predicate, of all images in a known pod spec."""

    component: str
    operator: str
    value: str = ""
    predicate: ImagePredicate | None = None


class ListOverrider(Struct, frozen=True, kw_only=True, rename="camel"):
    """Arguments to add to, or remove from, the command or args of the containers with this name."""

    container_name: str
    operator: str
    value: tuple[str, ...] = ()


class MarkOverrider(Struct, frozen=True, kw_only=True):
    """Labels or annotations to add, replace if present, or remove."""

    operator: str
    value: dict[str, str] = {}


class FieldOverrider(Struct, frozen=True, kw_only=True, rename="camel"):
    """Patches of a JSON or YAML document embedded as text in a field; if both are set, ``yaml`` is used."""

    field_path: str
    json: tuple[SubPatch, ...] = ()
    yaml: tuple[SubPatch, ...] = ()


class Overriders(Struct, frozen=True, kw_only=True, rename="camel"):
    """All overriders of one rule."""

    plaintext: tuple[Patch, ...] = ()
    image_overrider: tuple[ImageOverrider, ...] = ()
    command_overrider: tuple[ListOverrider, ...] = ()
    args_overrider: tuple[ListOverrider, ...] = ()
    labels_overrider: tuple[MarkOverrider, ...] = ()
    annotations_overrider: tuple[MarkOverrider, ...] = ()
    field_overrider: tuple[FieldOverrider, ...] = ()


class _Operation(TypedDict):
    """An operation of a JSON patch."""

    op: str
    path: str
    value: object


class _Container(NamedTuple):
    """A container and its JSON pointer."""

    path: str
    fields: Json


_OVERRIDERS: Final = msgspec.json.Decoder(Overriders)


def read(raw: msgspec.Raw | bytes) -> Overriders:
    """Decode the overriders of a rule; raises OverrideError if they are malformed."""
    try:
        return _OVERRIDERS.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OverrideError("overriders", str(error)) from None


class OverrideApplication:
    """Applies rules to a copy of an object, one after another.

    All rules share one cost budget. Without it, the largest policies and objects would block a thread for
    hours.
    """

    def __init__(self, value: KubeObject) -> None:
        # Copied, because `json_patch_in_place` changes the object.
        self.value = KubeObject(copy.deepcopy(value.document))
        self._budget = COST_MAX

    def apply(self, overriders: Overriders) -> None:
        """Apply all overriders of a rule. After an OverrideError the value is partly changed and must not be used."""
        for name, index, change in self._changes(overriders):
            field = f"{name}[{index}]" if index >= 0 else name
            identity = [self.value.at(*path) for path in _IDENTITY]
            try:
                change()
                self._check_identity(identity)
            except OverrideError as error:
                raise OverrideError(f"{field}{error.field}", error.reason) from None
            except (patches.PatchError, images.ImageError) as error:
                raise OverrideError(field, str(error)) from None
            except RecursionError:
                raise OverrideError(field, "is nested too deeply") from None

    def _changes(self, overriders: Overriders) -> Iterator[tuple[str, int, Callable[[], None]]]:
        """Yield the changes in order, with overrider kind and index; plaintext patches are one change with index -1."""
        for index, image in enumerate(overriders.image_overrider):
            yield "imageOverrider", index, partial(self._with_images, image)
        for index, overrider in enumerate(overriders.command_overrider):
            yield "commandOverrider", index, partial(self._with_list_items, "command", overrider)
        for index, overrider in enumerate(overriders.args_overrider):
            yield "argsOverrider", index, partial(self._with_list_items, "args", overrider)
        for index, mark_overrider in enumerate(overriders.labels_overrider):
            yield "labelsOverrider", index, partial(self._with_marks, "labels", mark_overrider)
        for index, mark_overrider in enumerate(overriders.annotations_overrider):
            yield "annotationsOverrider", index, partial(self._with_marks, "annotations", mark_overrider)
        for index, field in enumerate(overriders.field_overrider):
            yield "fieldOverrider", index, partial(self._with_field, field)
        if overriders.plaintext:
            operations: list[_Operation] = [
                {"op": patch.operator, "path": patch.path, "value": patch.value}
                for patch in overriders.plaintext
            ]
            yield "plaintext", -1, partial(self._apply_patch, operations)

    def _apply_patch(self, operations: list[_Operation]) -> None:
        changed = as_object(patches.json_patch_in_place(self.value.document, operations))
        if changed is None:
            raise OverrideError("", "leaves no object")
        self.value = KubeObject(changed)

    def _check_identity(self, identity: list[object]) -> None:
        """Raise OverrideError if a change altered the apiVersion, kind, name or namespace.

        Otherwise an override could overwrite a foreign object, because only the template's ownership is checked.
        """
        for path, previous in zip(_IDENTITY, identity, strict=True):
            if self.value.at(*path) != previous:
                raise OverrideError("", f"changes {'.'.join(path)}, which identifies the object")

    def _spend(self, cost: int) -> None:
        self._budget -= cost
        if self._budget < 0:
            raise OverrideError("", "is too much for one object")

    def _with_images(self, overrider: ImageOverrider) -> None:
        if overrider.predicate is not None:
            path = overrider.predicate.path
            if not path.startswith("/"):
                raise OverrideError(".predicate.path", "does not start with '/'")
            self._apply_patch([_image_operation(path, patches.at(self.value.document, path), overrider)])
            return
        self._apply_patch(
            [
                _image_operation(f"{container.path}/image", container.fields.get("image"), overrider)
                for part in ("initContainers", "containers")
                for container in self._containers(part)
            ]
        )

    def _with_list_items(self, part: str, overrider: ListOverrider) -> None:
        operations: list[_Operation] = []
        size = len(overrider.value) + sum(map(len, overrider.value))
        removed = frozenset(overrider.value)
        for container in self._containers("containers"):
            if not overrider.value or container.fields.get("name") != overrider.container_name:
                continue
            old = list_at(container.fields, part)
            self._spend(len(old) + size)
            if overrider.operator == "add":
                new = [*old, *overrider.value]
            else:
                new = [element for element in old if not (isinstance(element, str) and element in removed)]
            operations.append({"op": "add", "path": f"{container.path}/{part}", "value": new})
        self._apply_patch(operations)

    def _with_marks(self, part: str, overrider: MarkOverrider) -> None:
        metadata = self.value.metadata
        marks = dict(object_at(metadata, part))
        self._spend(len(marks))
        for name, mark in overrider.value.items():
            if overrider.operator == "add" or (overrider.operator == "replace" and name in marks):
                marks[name] = mark
            elif overrider.operator == "remove":
                marks.pop(name, None)
        if marks or part in metadata:
            self.value = self.value.with_metadata({part: marks})

    def _with_field(self, overrider: FieldOverrider) -> None:
        text = patches.at(self.value.document, overrider.field_path)
        if not isinstance(text, str):
            raise OverrideError(".fieldPath", f"{overrider.field_path} is not a string")
        self._spend(len(text))
        if overrider.yaml:
            document = patches.json_patch_in_place(_read_yaml(text), _sub_operations(overrider.yaml))
            new = yaml.safe_dump(document, default_flow_style=False, allow_unicode=True, sort_keys=True)
        elif overrider.json:
            try:
                document = msgspec.json.decode(text)
            except (msgspec.MsgspecError, ValueError):
                raise OverrideError(".fieldPath", f"{overrider.field_path} is not JSON") from None
            document = patches.json_patch_in_place(document, _sub_operations(overrider.json))
            new = msgspec.json.encode(document).decode()
        else:
            return
        self._apply_patch([{"op": "replace", "path": overrider.field_path, "value": new}])

    def _containers(self, part: str) -> Iterator[_Container]:
        """Yield the containers in the field ``part`` of the pod spec; none for kinds without a known pod spec."""
        pod_path = _POD_PATHS.get(self.value.kind)
        if pod_path is None:
            return
        containers = self.value.list_at(*pod_path.split("/")[1:], part)
        self._spend(len(containers))
        for index, item in enumerate(containers):
            yield _Container(f"{pod_path}/{part}/{index}", object_at(item))


def _image_operation(path: str, old: object, overrider: ImageOverrider) -> _Operation:
    if not isinstance(old, str):
        raise OverrideError("", f"{path} is not a string")
    new = images.changed(images.parse(old), overrider.component, overrider.operator, overrider.value)
    return {"op": "replace", "path": path, "value": str(new)}


def _sub_operations(changes: tuple[SubPatch, ...]) -> list[_Operation]:
    return [{"op": patch.operator, "path": patch.sub_path, "value": patch.value} for patch in changes]


def _read_yaml(text: str) -> object:
    values = [part.value for part in manifest_yaml.documents(text, Budget(_EMBEDDED))]
    failure = next((value for value in values if isinstance(value, Unreadable)), None)
    if failure is not None or len(values) != 1:
        raise OverrideError(".fieldPath", f"is not YAML: {failure or 'more than one document, or none'}")
    return values[0]
