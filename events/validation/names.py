"""Syntax of names, labels and quantities in Kubernetes."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from events import kube_objects, limits
from events.limits import quoted, shortened
from events.validation.schema import Fault, Text

_LABEL_NAME_CHARS_MAX: Final = limits.NAME_CHARS_MAX + 1 + limits.LABEL_CHARS_MAX
_QUANTITY_CHARS_MAX: Final = 64
_CACHED_LABELS_MAX: Final = 4_096
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
_QUANTITY: Final = re.compile(
    r"(?=.{1,64}\Z)[+-]?(?:\d+\.?\d*|\.\d+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?0?(?:[0-3]?\d|40))?", re.ASCII
)
# Names of roles may contain path separators and colons; names of all other kinds are DNS names.
_PATH_NAMED: Final = ("rbac.authorization.k8s.io/",)

API_VERSION: Final = Text(
    pattern=re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+"),
    means="an API version, such as apps/v1",
)
KIND: Final = Text(pattern=re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}"), means="a kind, such as Deployment")
OBJECT: Final = Text(
    pattern=re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9_.:]{0,251}[a-zA-Z0-9])?"),
    means="the name of an object",
)
NAMESPACE: Final = Text(
    pattern=re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?"), means="the name of a namespace"
)
LABEL_VALUE: Final = Text(pattern=_LABEL_VALUE, means="a label's value (63 letters, digits, '-', '_', '.')")

TAINT_KEY: Final = Text(
    filled=True,
    pattern=re.compile(f"({SUBDOMAIN.pattern}/)?{_LABEL_NAME.pattern}"),
    means="a taint's key (63 letters, digits, '-', '_', '.', behind a prefix such as example.com/)",
)
QUANTITY: Final = Text(pattern=_QUANTITY, means="a quantity (such as 250m, 2, 512Mi or 1.5Gi)", numeral=True)

FORMATS: Final[Mapping[str, Text]] = {
    "api-version": API_VERSION,
    "condition-type": Text(
        filled=True, pattern=re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,252}"), means="the type of a condition"
    ),
    "date-time": Text(),
    # Array indexes are not allowed: a replica count or a retained field is a single field.
    "field-path": Text(
        pattern=re.compile(r"\.?[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*"),
        means="a path, such as spec.size",
    ),
    "kind": KIND,
    "label-value": LABEL_VALUE,
    "namespace": NAMESPACE,
    "object-name": OBJECT,
    "quantity": QUANTITY,
    "taint-key": TAINT_KEY,
}
"""The syntax of texts, by the ``format`` that a schema names."""


def is_label_name(name: str) -> bool:
    """Return whether a label or taint may have this key: ``name`` or ``dns.name/name``."""
    # The length is checked before the cached call, so that oversized inputs do not fill the cache.
    return len(name) <= _LABEL_NAME_CHARS_MAX and _is_label_name(name)


def is_dns_name(name: str) -> bool:
    """Return whether a cluster, or an object of most kinds, may have this name: a DNS subdomain in lower case."""
    return len(name) <= limits.NAME_CHARS_MAX and SUBDOMAIN.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    return len(value) <= limits.LABEL_CHARS_MAX and _is_label_value(value)


def is_quantity(value: str) -> bool:
    """Return whether a text is a Kubernetes quantity: ``250m``, ``1.5Gi``, ``3e2``."""
    return len(value) <= _QUANTITY_CHARS_MAX and _is_quantity(value)


@lru_cache(maxsize=_CACHED_LABELS_MAX)
def _is_label_name(name: str) -> bool:
    prefix, slash, last = name.rpartition("/")
    if slash and (len(prefix) > limits.NAME_CHARS_MAX or not SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(last) is not None


@lru_cache(maxsize=_CACHED_LABELS_MAX)
def _is_label_value(value: str) -> bool:
    return _LABEL_VALUE.fullmatch(value) is not None


@lru_cache(maxsize=_CACHED_LABELS_MAX)
def _is_quantity(value: str) -> bool:
    return _QUANTITY.fullmatch(value) is not None


def label_faults(labels: Mapping[str, str], path: str) -> Iterator[Fault]:
    """Yield the faults of a set of labels, with paths below ``path``."""
    for name, value in labels.items():
        if not is_label_name(name):
            yield Fault(f"{path}.{shortened(name)}", "is not a label's name", "write name or dns.name/name")
        if not is_label_value(value):
            yield Fault(f"{path}.{shortened(name)}", f"{quoted(value)} is not {LABEL_VALUE.means}")


def head_faults(manifest: kube_objects.Manifest) -> Iterator[Fault]:
    """Yield the faults of an object's apiVersion, kind, name, namespace and labels."""
    api_version, kind = manifest.api_version, manifest.kind
    for field, form, text in (("apiVersion", API_VERSION, api_version), ("kind", KIND, kind)):
        if form.pattern and not form.pattern.fullmatch(text):
            yield Fault(field, f"{quoted(text)} is not {form.means}")
    name, namespace = manifest.metadata.name, manifest.metadata.namespace
    if not api_version.startswith(_PATH_NAMED) and not SUBDOMAIN.fullmatch(name):
        yield Fault(
            "metadata.name", f"{quoted(name)} is no DNS name", "use lower case letters, digits, '-', '.'"
        )
    if namespace and not _DNS_LABEL.fullmatch(namespace):
        yield Fault("metadata.namespace", f"{quoted(namespace)} is not {NAMESPACE.means}")
    yield from label_faults(manifest.metadata.labels, "metadata.labels")
