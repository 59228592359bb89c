"""Form and rules of OverridePolicy and ClusterOverridePolicy.

The fields are those of Karmada's API; the value of a patch may be any JSON. Whether a patch can be applied
depends on the object and is checked when a manifest is rendered.
"""

from collections.abc import Iterator
from typing import Final

from events.json_values import as_list, as_object
from events.validation import policies, selectors
from events.validation.schema import Fault, Fields, Form, Free, Many, Table, Text

_CHANGE: Final = Text(choices=("add", "remove", "replace"))
_PATCHES: Final = Many(
    of=Fields(
        known={"subPath": Text(), "operator": _CHANGE, "value": Free()}, required=("subPath", "operator")
    )
)
_COMMANDS: Final = Many(
    of=Fields(
        known={
            "containerName": Text(),
            "operator": Text(choices=("add", "remove")),
            "value": Many(of=Text()),
        },
        required=("containerName", "operator"),
    )
)
_MARKS: Final = Many(
    of=Fields(known={"operator": _CHANGE, "value": Table(of=Text())}, required=("operator",))
)
OVERRIDERS: Final = Fields(
    known={
        "plaintext": Many(
            of=Fields(
                known={"path": Text(), "operator": _CHANGE, "value": Free()}, required=("path", "operator")
            )
        ),
        "imageOverrider": Many(
            of=Fields(
                known={
                    "predicate": Fields(known={"path": Text()}, required=("path",)),
                    "component": Text(choices=("Registry", "Repository", "Tag")),
                    "operator": _CHANGE,
                    "value": Text(),
                },
                required=("component", "operator"),
            )
        ),
        "commandOverrider": _COMMANDS,
        "argsOverrider": _COMMANDS,
        "labelsOverrider": _MARKS,
        "annotationsOverrider": _MARKS,
        "fieldOverrider": Many(
            of=Fields(
                known={"fieldPath": Text(), "json": _PATCHES, "yaml": _PATCHES}, required=("fieldPath",)
            )
        ),
    }
)
_TARGET: Final[Form] = Fields(known=policies.AFFINITY)
SPEC: Final = Fields(
    known={
        "resourceSelectors": Many(of=policies.SELECTOR),
        "overrideRules": Many(
            of=Fields(known={"targetCluster": _TARGET, "overriders": OVERRIDERS}, required=("overriders",))
        ),
        "targetCluster": _TARGET,
        "overriders": OVERRIDERS,
    }
)


def rules(value: object) -> Iterator[Fault]:
    """Yield the faults in the selectors of a spec; values of the wrong type are ignored here."""
    spec = as_object(value) or {}
    for place, item in enumerate(as_list(spec.get("resourceSelectors")) or []):
        path = f"spec.resourceSelectors[{place}].labelSelector"
        yield from selectors.label_rules((as_object(item) or {}).get("labelSelector"), path)
    yield from policies.affinity_rules(spec.get("targetCluster"), "spec.targetCluster")
    for place, item in enumerate(as_list(spec.get("overrideRules")) or []):
        target = (as_object(item) or {}).get("targetCluster")
        yield from policies.affinity_rules(target, f"spec.overrideRules[{place}].targetCluster")
