"""Filters of a query: by name, labels and fields."""

from engine.http.kube.requests import Query
from engine.kubeapi.errors import status_objects
from engine.kubeapi.requests import field_selectors, label_selectors
from engine.kubeapi.schema.resources import Resource
from events.kube_objects import KubeObject


class ObjectFilter:
    """Predicate on objects, from selectors and a name; raises StatusError if a selector is invalid."""

    def __init__(self, resource: Resource, query: Query, name: str = "") -> None:
        try:
            self._labels = label_selectors.labels(query.label_selector) if query.label_selector else None
            self.fields = field_selectors.fields(query.field_selector, resource)
        except label_selectors.SelectorError as error:
            raise status_objects.bad_request(str(error)) from None
        self._name = name

    def __call__(self, value: KubeObject) -> bool:
        if self._name and value.name != self._name:
            return False
        if self._labels is not None:
            labels = {key: str(text) for key, text in value.labels.items()}
            if not self._labels.matches(labels):
                return False
        return self.fields.matches(value)
