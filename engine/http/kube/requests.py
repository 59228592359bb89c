"""Path and query parameters of a Kubernetes API request, and the form of the response that the client accepts."""

import re
from typing import Final, Literal

from msgspec import Struct
from starlette.requests import Request

from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.requests import field_selectors, label_selectors
from engine.kubeapi.requests.options import of_manager
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import resource_versions
from events import records
from events.kube_objects import KubeObject

Validation = Literal["Strict", "Warn", "Ignore"]

_TEXT_CHARS_MAX: Final = 4096
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX: Final = 20
"""Numbers with more digits do not fit into 64 bits."""

_INT64: Final = range(-(2**63), 2**63)
_SHOWN_CHARS_MAX: Final = 40
_OPTIONS_BY_METHOD: Final = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}
_WRITES: Final = ("POST", "PUT", "PATCH")
APPLY_PATCHES: Final = ("application/apply-patch+yaml", "application/apply-patch")
_VALIDATIONS: Final[dict[str, Validation]] = {"Strict": "Strict", "Warn": "Warn", "Ignore": "Ignore"}

Include = Literal["None", "Metadata", "Object"]

_ACCEPTED: Final = (
    records.JSON,
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/*",
    "*/*",
)
"""Media types that a Kubernetes API server accepts; here the response is always JSON, which all clients can read."""
_VERSIONS: Final = ("v1", "v1beta1")


class Query(Struct, frozen=True, kw_only=True):
    """The query parameters; absent ones have Kubernetes' defaults."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    after: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int = 0
    field_manager: str = ""
    validation: Validation = "Warn"
    force: bool = False
    dry_run: bool = False
    include: Literal["None", "Metadata", "Object"] = "Metadata"

    @property
    def lists_first(self) -> bool:
        """Whether a watch begins with all current objects.

        Other watches begin after their resourceVersion, or with the next change if they have none.
        """
        if self.initial_events is None:
            return not self.is_versioned
        return self.initial_events

    @property
    def is_versioned(self) -> bool:
        """Whether the resourceVersion names a version; an empty text and ``0`` mean any version."""
        return bool(self.resource_version.strip("0"))


_NO_PARAMETERS: Final = Query()


def parameters_of(request: Request) -> dict[str, str]:
    """The query parameters by name; of a repeated one the first value, as in Kubernetes."""
    return dict(reversed(request.query_params.multi_items()))


def is_set(parameters: dict[str, str], name: str) -> bool:
    """Whether a flag is set: by any value but ``0`` and ``false``, as in Kubernetes."""
    return name in parameters and parameters[name].lower() not in ("0", "false")


def query(request: Request) -> Query:
    """Parse the query parameters; raises StatusError."""
    if not request.scope["query_string"] and request.method != "PATCH":
        return _NO_PARAMETERS  # not for PATCH: an apply without a field manager must be refused below
    raw_parameters = parameters_of(request)
    parameters = {name: value for name, value in raw_parameters.items() if value}
    for name, value in parameters.items():
        if name not in {"labelSelector", "fieldSelector", "continue"} and len(value) > _TEXT_CHARS_MAX:
            raise status_objects.bad_request(f"{name} is too long")
    validation = parameters.get("fieldValidation", "Warn")
    options = _OPTIONS_BY_METHOD.get(request.method, "ListOptions")
    manager = parameters.get("fieldManager", "")
    is_applied = request.method == "PATCH" and media_type(request) in APPLY_PATCHES
    if request.method in _WRITES and (wrong := list(of_manager(manager, needed=is_applied))):
        raise status_objects.invalid_options(options, *wrong)
    if validation not in _VALIDATIONS:
        cause = causes.unsupported("fieldValidation", validation, ("", *sorted(_VALIDATIONS)))
        raise status_objects.invalid_options(options, cause)
    dry_run = parameters.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise status_objects.invalid_options(options, causes.unsupported("dryRun", [dry_run], ("All",)))
    include = parameters.get("includeObject", "Metadata")
    return Query(
        label_selector=parameters.get("labelSelector", ""),
        field_selector=parameters.get("fieldSelector", ""),
        limit=max(_number(parameters, "limit"), 0),
        after=parameters.get("continue", ""),
        resource_version=parameters.get("resourceVersion", ""),
        match=parameters.get("resourceVersionMatch", ""),
        watch=is_set(raw_parameters, "watch"),
        bookmarks=is_set(raw_parameters, "allowWatchBookmarks"),
        initial_events=is_set(raw_parameters, "sendInitialEvents")
        if "sendInitialEvents" in raw_parameters
        else None,
        timeout_s=max(_number(parameters, "timeoutSeconds"), 0),
        field_manager=manager,
        validation=_VALIDATIONS[validation],
        force=is_set(raw_parameters, "force"),
        dry_run=bool(dry_run),
        include=include if include in ("None", "Metadata", "Object") else "Metadata",
    )


def media_type(request: Request) -> str:
    """The media type of the body, without parameters; empty if the client sends none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def version_fault(text: str) -> str:
    """Return the error of a text that is not a valid resourceVersion; empty if the text is valid or empty."""
    if not text or resource_versions.is_valid(text):
        return ""
    reason = "value out of range" if text.isascii() and text.isdecimal() else "invalid syntax"
    detail = f'strconv.ParseUint: parsing "{text[:_SHOWN_CHARS_MAX]}": {reason}'
    return causes.invalid("resourceVersion", text[:_SHOWN_CHARS_MAX], detail).text


class Form(Struct, frozen=True, kw_only=True):
    """The form of objects in a response: whole, as a table, or only their metadata.

    ``table`` is the API version of the table, ``partial`` that of the metadata; empty if another form is accepted.
    """

    table: str = ""
    partial: str = ""
    include: Include = "Metadata"

    @property
    def is_brief(self) -> bool:
        """Whether the response is a table without whole objects, so objects need only the fields of its columns."""
        return bool(self.table) and self.include != "Object"


def form(accept: str, include: Include = "Metadata") -> Form:
    """The first supported form in an Accept header; ``include`` is ``includeObject`` of a request for a table.

    Raises StatusError (406) if no form is supported.
    """
    is_known = not accept.strip()
    for media_range in accept.split(","):
        media, *parameters = (part.strip() for part in media_range.split(";"))
        if media not in _ACCEPTED:
            continue
        is_known = True
        values = {name: value for name, _equals, value in (part.partition("=") for part in parameters)}
        version = values.get("v", "v1")
        match values.get("as"):
            case None:
                return Form()
            case "Table" if version in _VERSIONS:
                return Form(table=version, include=include)
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if version in _VERSIONS:
                return Form(partial=version)
            case _:
                continue
    if accept.strip():
        raise status_objects.not_acceptable(known=is_known)
    return Form()


def _number(parameters: dict[str, str], name: str) -> int:
    text = parameters.get(name, "0")
    if not _NUMBER.fullmatch(text):
        raise status_objects.bad_request(
            f'strconv.ParseInt: parsing "{text[:_SHOWN_CHARS_MAX]}": invalid syntax'
        )
    if len(text.lstrip("+-").lstrip("0")) > _DIGITS_MAX or int(text) not in _INT64:
        raise status_objects.bad_request(
            f'strconv.ParseInt: parsing "{text[:_SHOWN_CHARS_MAX]}": value out of range'
        )
    return int(text)


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
