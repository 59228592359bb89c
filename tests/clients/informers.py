"""An informer built from the Python client's own parts: a list, then a watch that resumes.

It lists once, then watches from that resourceVersion; after a disconnect it resumes there, and lists again
only when the version is too old.
"""

# The library's annotations say too little, or that everything may be absent.
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

import threading
import time
from collections.abc import Mapping
from typing import Final

import urllib3

# The library loads a class when it is named, CoreV1Api in half a second: annotations have it in quotes.
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

_WATCH_S: Final = 5
_AFTER_FAILURE_S: Final = 0.05
_GONE: Final = 410
_PASSING: Final = (urllib3.exceptions.HTTPError, OSError)


class Informer(threading.Thread):
    """Keeps the ConfigMaps of a namespace in ``held``: name to resourceVersion and data.

    ``broken`` counts disconnects, ``relisted`` lists, and ``wrong`` has the events that cannot follow from
    the events before.
    """

    def __init__(self, api: "client.CoreV1Api", namespace: str) -> None:
        super().__init__(name="informer", daemon=True)
        self.held: dict[str, tuple[str, Mapping[str, str]]] = {}
        self.stopping = threading.Event()
        self.broken = 0
        self.relisted = 0
        self.events = 0
        self.wrong: list[str] = []
        self._api = api
        self._namespace = namespace

    def run(self) -> None:
        """List and watch until stopped."""
        while not self.stopping.is_set():
            try:
                version = self._list()
                while not self.stopping.is_set():
                    version = self._follow(version)
            except ApiException as error:
                if error.status not in (_GONE, 503):
                    self.wrong.append(str(error))
                time.sleep(_AFTER_FAILURE_S)
            except _PASSING:
                time.sleep(_AFTER_FAILURE_S)

    def _list(self) -> str:
        listed = self._api.list_namespaced_config_map(self._namespace)
        self.held = {str(config_map.metadata.name): _of(config_map) for config_map in listed.items}
        self.relisted += 1
        return str(listed.metadata.resource_version)

    def _follow(self, version: str) -> str:
        """Watch from a resourceVersion on; return the one to continue from."""
        following = watch.Watch()
        try:
            for event in following.stream(
                self._api.list_namespaced_config_map,
                self._namespace,
                resource_version=version,
                timeout_seconds=_WATCH_S,
                _request_timeout=2 * _WATCH_S,
            ):
                version = event["object"].metadata.resource_version
                self._take(event["type"], event["object"])
                if self.stopping.is_set():
                    following.stop()
        except _PASSING:
            self.broken += 1
            time.sleep(_AFTER_FAILURE_S)
        return version

    def _take(self, word: str, value: client.V1ConfigMap) -> None:
        name = str(value.metadata.name)
        known = name in self.held
        self.events += 1
        if known != (word != "ADDED"):
            self.wrong.append(f"{word} {name} at {value.metadata.resource_version}, known: {known}")
        if word == "DELETED":
            self.held.pop(name, None)
        else:
            self.held[name] = _of(value)


def expected_objects(api: "client.CoreV1Api", namespace: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return what an informer should hold now."""
    listed = api.list_namespaced_config_map(namespace)
    return {str(config_map.metadata.name): _of(config_map) for config_map in listed.items}


def _of(value: client.V1ConfigMap) -> tuple[str, Mapping[str, str]]:
    return str(value.metadata.resource_version), value.data or {}
