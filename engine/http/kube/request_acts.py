"""The act of a request, as RBAC rules name it: a verb on a resource or path."""

from typing import Final

from starlette.requests import Request

from engine.http.kube.requests import is_set, parameters_of
from engine.kubeapi.requests import field_selectors
from engine.kubeapi.rights.rbac import Act
from engine.kubeapi.schema.resources import ApiPath

_VERBS: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def act_at(request: Request, api_path: ApiPath | None, path: str) -> Act:
    """The act of a request: on a resource, or on another path if ``api_path`` is None."""
    if api_path is None:
        return Act(verb=_VERBS.get(request.method, "get"), path=path)
    return act_of(request, api_path)


def act_of(request: Request, api_path: ApiPath) -> Act:
    """The verb and resource of a request, as RBAC rules name them."""
    verb = _VERBS.get(request.method, "get")
    name = api_path.name
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb == "list" and request.scope["query_string"]:
        # Only a read of a collection can be a watch, or name one object by a field selector. Other requests ignore
        # these parameters, so their rights must not depend on them.
        parameters = parameters_of(request)
        verb = "watch" if is_set(parameters, "watch") else verb
        name = _named(parameters.get("fieldSelector", ""))
    namespace = api_path.namespace
    if (api_path.group, api_path.plural) == ("", "namespaces"):
        namespace = api_path.name
    return Act(
        verb=verb,
        group=api_path.group,
        resource=api_path.plural,
        part=api_path.part,
        namespace=namespace,
        name=name,
    )


def _named(chosen: str) -> str:
    """The name that a field selector requires; empty if it requires none."""
    for term in chosen[: field_selectors.TEXT_CHARS_MAX].split(","):
        field, equals, value = term.partition("=")
        if field.strip() == "metadata.name" and equals:
            return value.removeprefix("=").strip()
    return ""
