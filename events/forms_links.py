"""What a link must look like, beyond the types of its fields.

Part of every fold's verdict: what a link names becomes keys of works and fields of bindings, whoever wrote it.
"""

import re
from typing import Final

from events import forms_names as names
from events import keys, limits, links, objects, shapes

_SHOWN_CHARS_MAX: Final = 80
_BOUND: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?")


def check(data: shapes.Event) -> None:
    """Raises ``objects.Refusal`` with the first thing that is wrong; links of other types pass."""
    match data:
        case links.DependencyNeeded(dependency=ref, by=by, clusters=clusters):
            _check_need(ref, by)
            for name in clusters:
                if not names.is_dns_name(name):
                    raise objects.Refusal("clusters", f"{name[:_SHOWN_CHARS_MAX]!r} is no name of a cluster")
        case links.DependencyDropped(dependency=ref, by=by):
            _check_need(ref, by)
        case _:
            return


def _check_need(ref: shapes.WorkloadRef, by: str) -> None:
    for field, form, text in (
        ("apiVersion", names.API_VERSION, ref.api_version),
        ("kind", names.KIND, ref.kind),
        ("name", names.OBJECT, ref.name),
        ("namespace", names.NAMESPACE, ref.namespace),
    ):
        if form.pattern and not form.pattern.fullmatch(text):
            shown = repr(text[:_SHOWN_CHARS_MAX])
            raise objects.Refusal(f"dependency.{field}", f"{shown} is not {form.means}")
    namespace, name = keys.split(by)
    if not namespace or namespace != ref.namespace:
        raise objects.Refusal("by", "names no binding of the object's own namespace")
    if len(by) > limits.KEY_BYTES_MAX or not _BOUND.fullmatch(name):
        raise objects.Refusal("by", f"{by[:_SHOWN_CHARS_MAX]!r} is no key of a binding")
