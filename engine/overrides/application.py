"""Application of override policies to an object.

Overriders apply by kind in Karmada's order (image, command, args, labels, annotations, field, plaintext),
within a kind in listed order. Patches follow RFC 6902. The caller selects the policies; a rule is applied
completely, or fails with the field and the reason.
"""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec
import yaml
from msgspec import Struct

from engine.kubeapi.patching import patches
from engine.objects import manifest_yaml
from engine.objects.manifest_limits import Budget, Limits, Unreadable
from engine.overrides import images
from events.json_values import Json, as_object, list_at, object_at

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
"""Path of the pod spec by built-in kind; other kinds need an image predicate."""

_EMBEDDED: Final = Limits(content_bytes_max=2**20, documents_max=1, depth_max=100, repeated_bytes_max=2**20)


COST_MAX: Final = 4 * 2**20
"""Budget of all overriders of one object: containers, labels and arguments visited, bytes parsed and written."""


class OverrideError(Exception):
    """A rule that cannot be applied; ``field`` is the overrider by its position within the rule."""

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
    """A change of one part of the image at the predicate, or of all container images of kinds with a known pod path."""

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


_OVERRIDERS: Final = msgspec.json.Decoder(Overriders)


def read(raw: msgspec.Raw | bytes) -> Overriders:
    """Decode the overriders of a rule; raises OverrideError if they are malformed."""
    try:
        return _OVERRIDERS.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OverrideError("overriders", str(error)) from None


class OverrideApplication:
    """Applies rules to a copy of an object, one after another.

    All rules share one cost budget: with the largest object and policies, unbounded work would block a thread
    for hours.
    """

    def __init__(self, value: Json) -> None:
        # `json_patch_own` changes the value in place.
        self.value = copy.deepcopy(value)
        self._budget = COST_MAX

    def apply(self, overriders: Overriders) -> None:
        """Apply all overriders of a rule. After an OverrideError the value is partly changed and must not be used."""
        for name, index, change in self._changes(overriders):
            field = f"{name}[{index}]" if index >= 0 else name
            try:
                changed = as_object(change())
            except OverrideError as error:
                raise OverrideError(f"{field}{error.field}", error.reason) from None
            except (patches.PatchError, images.ImageError) as error:
                raise OverrideError(field, str(error)) from None
            except RecursionError:
                raise OverrideError(field, "is nested too deeply") from None
            if changed is None:
                raise OverrideError(field, "leaves no object")
            self.value = changed

    def _changes(self, overriders: Overriders) -> Iterator[tuple[str, int, Callable[[], object]]]:
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
            operations = [
                _operation(patch.operator, patch.path, patch.value) for patch in overriders.plaintext
            ]
            yield "plaintext", -1, partial(self._apply_patch, operations)

    def _apply_patch(self, operations: list[Json]) -> object:
        return patches.json_patch_own(self.value, operations)

    def _spend(self, cost: int) -> None:
        self._budget -= cost
        if self._budget < 0:
            raise OverrideError("", "is too much for one object")

    def _with_images(self, overrider: ImageOverrider) -> object:
        if overrider.predicate is not None:
            path = overrider.predicate.path
            if not path.startswith("/"):
                raise OverrideError(".predicate.path", "does not start with '/'")
            return self._apply_patch([_image_patch(path, patches.at(self.value, path), overrider)])
        return self._apply_patch(
            [
                _image_patch(f"{path}/image", container.get("image"), overrider)
                for part in ("initContainers", "containers")
                for path, container in self._containers(part)
            ]
        )

    def _with_list_items(self, part: str, overrider: ListOverrider) -> object:
        operations: list[Json] = []
        size = sum(map(len, overrider.value))
        for path, container in self._containers("containers"):
            if not overrider.value or container.get("name") != overrider.container_name:
                continue
            old = list_at(container, part)
            self._spend(len(old) + size)
            if overrider.operator == "add":
                new = [*old, *overrider.value]
            else:
                new = [argument for argument in old if argument not in overrider.value]
            operations.append(_operation("add", f"{path}/{part}", new))
        return self._apply_patch(operations)

    def _with_marks(self, part: str, overrider: MarkOverrider) -> Json:
        metadata = object_at(self.value, "metadata")
        marks = dict(object_at(metadata, part))
        self._spend(len(marks))
        for name, mark in overrider.value.items():
            if overrider.operator == "add" or (overrider.operator == "replace" and name in marks):
                marks[name] = mark
            elif overrider.operator == "remove":
                marks.pop(name, None)
        if not marks and part not in metadata:
            return self.value
        return {**self.value, "metadata": {**metadata, part: marks}}

    def _with_field(self, overrider: FieldOverrider) -> object:
        text = patches.at(self.value, overrider.field_path)
        if not isinstance(text, str):
            raise OverrideError(".fieldPath", f"{overrider.field_path} is no text")
        self._spend(len(text))
        if overrider.yaml:
            document = patches.json_patch_own(_read_yaml(text), _sub_operations(overrider.yaml))
            new = yaml.safe_dump(document, default_flow_style=False, allow_unicode=True, sort_keys=True)
        elif overrider.json:
            try:
                document = msgspec.json.decode(text)
            except (msgspec.MsgspecError, ValueError):
                raise OverrideError(".fieldPath", f"{overrider.field_path} is no JSON") from None
            document = patches.json_patch_own(document, _sub_operations(overrider.json))
            new = msgspec.json.encode(document).decode()
        else:
            return self.value
        return self._apply_patch([_operation("replace", overrider.field_path, new)])

    def _containers(self, part: str) -> Iterator[tuple[str, Json]]:
        """Yield the containers of the pods of a known kind, each with its JSON pointer."""
        pod_path = _POD_PATHS.get(str(self.value.get("kind")))
        if pod_path is None:
            return
        pods: Json | None = self.value
        for step in pod_path.split("/")[1:]:
            pods = as_object((pods or {}).get(step))
        containers = list_at(pods, part)
        self._spend(len(containers))
        for index, item in enumerate(containers):
            yield f"{pod_path}/{part}/{index}", object_at(item)


def _operation(operator: str, path: str, value: object) -> Json:
    return {"op": operator, "path": path, "value": value}


def _image_patch(path: str, old: object, overrider: ImageOverrider) -> Json:
    if not isinstance(old, str):
        raise OverrideError("", f"{path} is no text")
    new = images.changed(images.parse(old), overrider.component, overrider.operator, overrider.value)
    return _operation("replace", path, str(new))


def _sub_operations(changes: tuple[SubPatch, ...]) -> list[Json]:
    return [_operation(patch.operator, patch.sub_path, patch.value) for patch in changes]


def _read_yaml(text: str) -> object:
    values = [part.value for part in manifest_yaml.documents(text, Budget(_EMBEDDED))]
    failure = next((value for value in values if isinstance(value, Unreadable)), None)
    if failure is not None or len(values) != 1:
        raise OverrideError(".fieldPath", f"is no YAML: {failure or 'more than one document, or none'}")
    return values[0]
