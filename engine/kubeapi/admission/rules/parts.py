"""Nested objects of a manifest with the paths of their fields."""

from collections.abc import Iterator

from msgspec import Struct

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.json_values import Json, as_object, as_text, list_at, objects_at
from events.kube_objects import KubeObject


class Part(Struct, frozen=True):
    """The object at ``path``; empty if there is none."""

    fields: Json
    path: str

    def has(self, name: str) -> bool:
        return as_object(self.fields.get(name)) is not None

    def part(self, name: str) -> "Part":
        return Part(as_object(self.fields.get(name)) or {}, f"{self.path}.{name}")

    def parts(self, name: str) -> list["Part"]:
        """Return the objects in a list."""
        items = enumerate(objects_at(self.fields, name))
        return [Part(item, f"{self.path}.{name}[{index}]") for index, item in items]

    def list_at(self, name: str) -> list[object]:
        return list_at(self.fields, name)

    def text(self, name: str) -> str:
        return as_text(self.fields.get(name))

    def number(self, name: str) -> int | None:
        value = self.fields.get(name)
        return value if words.is_number(value) else None

    def required(self, name: str, detail: str = "") -> Iterator[Cause]:
        """Yield an error if a field is absent or empty."""
        if not self.fields.get(name):
            yield causes.required(f"{self.path}.{name}", detail)

    def name(self, field: str, detail: str = "") -> Iterator[Cause]:
        """Yield the errors of a required name of an object."""
        yield from words.required(f"{self.path}.{field}", self.text(field), words.subdomain_faults, detail)

    def invalid(self, name: str, detail: str) -> Cause:
        return causes.invalid(f"{self.path}.{name}", self.fields.get(name), detail)

    def forbidden(self, name: str, detail: str) -> Cause:
        return causes.forbidden(f"{self.path}.{name}", detail)


def spec_of(value: KubeObject) -> Part:
    return Part(value.object_at("spec"), "spec")
