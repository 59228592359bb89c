"""Validation of names, labels, ports and numbers with the messages of Kubernetes, to the letter."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, TypeGuard

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values.selectors import Operator
from events import limits
from events.json_values import Json, list_at, object_at
from events.kube_objects import KubeObject
from events.validation import names
from events.validation.schema import join

_PORT_NAME_CHARS_MAX: Final = 15
_ANNOTATIONS_BYTES_MAX: Final = 262_144

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OLD_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT_CHARS_MAX: Final = 3
_TEXT_CHARS_MAX: Final = 2**20
_PERCENT: Final = re.compile(r"[0-9]+%")

_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_OLD_LABEL_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_WORDS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_WORDS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',"
    "  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PERCENT_WORDS: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for"
    " validation is '[0-9]+%')"
)
AT_LEAST_ZERO: Final = "must be greater than or equal to 0"
PORT: Final = "must be between 1 and 65535, inclusive"
IMMUTABLE: Final = "field is immutable"


def bounded(causes: Iterable[Cause]) -> list[Cause]:
    """Return the first errors, until their texts exceed 1 MiB.

    An object of 1 MiB can have thousands of errors that each quote hundreds of kilobytes of it.
    """
    result: list[Cause] = []
    size = 0
    for cause in causes:
        result.append(cause)
        size += len(cause.field) + len(cause.message)
        if size > _TEXT_CHARS_MAX:
            break
    return result


def label_faults(text: str) -> list[str]:
    """Return the errors of a text as an RFC 1123 label."""
    return _texts(text, _LABEL, _LABEL_WORDS, limits.LABEL_CHARS_MAX)


def old_label_faults(text: str) -> list[str]:
    """Return the errors of a text as a DNS-1035 label."""
    return _texts(text, _OLD_LABEL, _OLD_LABEL_WORDS, limits.LABEL_CHARS_MAX)


def subdomain_faults(text: str) -> list[str]:
    """Return the errors of a text as an RFC 1123 subdomain."""
    return _texts(text, names.SUBDOMAIN, _SUBDOMAIN_WORDS, limits.NAME_CHARS_MAX)


def segment_faults(text: str) -> list[str]:
    """Return the errors of a text as a URL path segment, the form of the names of RBAC objects."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in ("/", "%") if sign in text]


def qualified_faults(text: str) -> list[str]:
    """Return the errors of a text as a label key (qualified name)."""
    parts = text.split("/")
    if len(parts) > 2:  # noqa: PLR2004  # a prefix and a name
        return [
            f"a qualified name {_NAME_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    result: list[str] = []
    if len(parts) == 2:  # noqa: PLR2004
        prefix = parts[0]
        faults = subdomain_faults(prefix) if prefix else ["must be non-empty"]
        result.extend(f"prefix part {fault}" for fault in faults)
    name = parts[-1]
    if not name:
        result.append("name part must be non-empty")
    elif len(name) > limits.LABEL_CHARS_MAX:
        result.append(f"name part must be no more than {limits.LABEL_CHARS_MAX} characters")
    if not _NAME.fullmatch(name):
        result.append(f"name part {_NAME_WORDS}")
    return result


def value_faults(text: str) -> list[str]:
    """Return the reasons why a text is not a valid label value."""
    return _texts(text, _VALUE, _VALUE_WORDS, limits.LABEL_CHARS_MAX)


def port_name_faults(text: str) -> list[str]:
    """Return the errors of a text as the name of a port."""
    result: list[str] = []
    if len(text) > _PORT_NAME_CHARS_MAX:
        result.append(f"must be no more than {_PORT_NAME_CHARS_MAX} characters")
    if not re.fullmatch(r"[-a-z0-9]+", text):
        result.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        result.append("must contain at least one letter (a-z)")
    if "--" in text:
        result.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        result.append("must not begin or end with a hyphen")
    return result


def key_causes(path: str, key: str) -> Iterator[Cause]:
    """Yield the errors of a data key of a ConfigMap or a Secret."""
    if len(key) > limits.NAME_CHARS_MAX:
        yield causes.invalid(path, key, f"must be no more than {limits.NAME_CHARS_MAX} characters")
    if not _KEY.fullmatch(key):
        yield causes.invalid(path, key, _KEY_WORDS)
    if key in (".", ".."):
        yield causes.invalid(path, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield causes.invalid(path, key, "must not start with '..'")


def labels(value: object, path: str) -> Iterator[Cause]:
    """Yield the errors of a map of labels, each with the path of the map, as in Kubernetes."""
    for key, text in sorted(object_at(value).items()):
        if not names.is_label_name(key):
            yield from each_invalid(path, key, qualified_faults(key))
        if isinstance(text, str) and not names.is_label_value(text):
            yield from each_invalid(path, text, value_faults(text))


def annotations(value: object, path: str) -> Iterator[Cause]:
    """Yield the errors of annotations: invalid keys and a total size over 256 KiB."""
    entries = object_at(value)
    for key in sorted(entries):
        yield from each_invalid(path, key, qualified_faults(key.lower()))
    size = sum(len(key.encode()) + len(str(text).encode()) for key, text in entries.items())
    if size > _ANNOTATIONS_BYTES_MAX:
        yield causes.too_long(path, _ANNOTATIONS_BYTES_MAX)


def each_invalid(path: str, value: object, faults: list[str]) -> Iterator[Cause]:
    for fault in faults:
        yield causes.invalid(path, value, fault)


def required(path: str, text: str, faults: Callable[[str], list[str]], detail: str = "") -> Iterator[Cause]:
    """Yield an error if the text is empty (with ``detail``), otherwise one for each of its faults."""
    if not text:
        yield causes.required(path, detail)
    else:
        yield from each_invalid(path, text, faults(text))


def not_negative(fields: Json, name: str, path: str) -> Iterator[Cause]:
    """Yield an error if the field ``name`` is set and negative."""
    value = fields.get(name)
    if is_number(value) and value < 0:
        yield causes.invalid(join(path, name), value, AT_LEAST_ZERO)


def one_of(fields: Json, name: str, path: str, choices: Collection[str]) -> Iterator[Cause]:
    """Yield an error if the field ``name`` is set to a value outside the choices."""
    value = fields.get(name)
    if value is not None and value not in choices:
        yield causes.unsupported(join(path, name), value, choices)


def port(value: object, path: str) -> Iterator[Cause]:
    if is_number(value) and not 1 <= value <= limits.PORT_MAX:
        yield causes.invalid(path, value, PORT)


def port_or_name(value: object, path: str) -> Iterator[Cause]:
    """Yield the errors of a port number or port name (``targetPort`` and the like)."""
    if isinstance(value, str):
        yield from each_invalid(path, value, port_name_faults(value))
    else:
        yield from port(value, path)


def amount(value: object, path: str) -> Iterator[Cause]:
    """Yield the errors of a non-negative integer or a percentage (``maxUnavailable`` and the like)."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield causes.invalid(path, value, _PERCENT_WORDS)
    elif is_number(value) and value < 0:
        yield causes.invalid(path, value, AT_LEAST_ZERO)


def at_most_all(value: object, path: str) -> Iterator[Cause]:
    """Yield an error for a percentage over 100."""
    if not isinstance(value, str) or not _PERCENT.fullmatch(value):
        return
    # Compared as text first: ``int`` refuses texts of thousands of digits.
    digits = value[:-1].lstrip("0")
    if len(digits) > _PERCENT_CHARS_MAX or int(digits or "0") > 100:  # noqa: PLR2004
        yield causes.invalid(path, value, "must not be greater than 100%")


def selector(value: object, path: str) -> Iterator[Cause]:
    """Yield the errors of a label selector."""
    fields = object_at(value)
    yield from labels(fields.get("matchLabels"), f"{path}.matchLabels")
    for index, item in enumerate(list_at(fields, "matchExpressions")):
        term, where = object_at(item), f"{path}.matchExpressions[{index}]"
        values = list_at(term, "values")
        match term.get("operator"):
            case Operator.IN | Operator.NOT_IN:
                if not values:
                    yield causes.required(
                        f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                    )
            case Operator.EXISTS | Operator.DOES_NOT_EXIST:
                if values:
                    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield causes.forbidden(f"{where}.values", detail)
            case other:
                yield causes.invalid(f"{where}.operator", other or "", "not a valid selector operator")
        key = str(term.get("key") or "")
        yield from each_invalid(f"{where}.key", key, qualified_faults(key))
        for number, text in enumerate(values):
            yield from each_invalid(f"{where}.values[{number}]", text, value_faults(str(text)))


def immutable(value: KubeObject, live: KubeObject | None, *paths: str) -> Iterator[Cause]:
    """Yield an error for each of the fields at dotted paths that differs from the stored object."""
    for path in paths:
        new = value.at(*path.split("."))
        if live is not None and new != live.at(*path.split(".")):
            yield causes.invalid(path, new, IMMUTABLE)


def is_number(value: object) -> TypeGuard[int]:
    """Whether the value is an integer; False for booleans."""
    return isinstance(value, int) and not isinstance(value, bool)


def _texts(text: str, form: re.Pattern[str], words: str, chars_max: int) -> list[str]:
    faults = [f"must be no more than {chars_max} characters"] if len(text) > chars_max else []
    return faults if form.fullmatch(text) else [*faults, words]
