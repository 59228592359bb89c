"""Form and rules of ClusterTaintPolicy, which turns conditions of clusters into taints."""

from collections.abc import Iterator
from typing import Final

from events.json_values import as_object
from events.validation import names, policies
from events.validation.schema import Fault, Fields, Many, Text

TAINT: Final = Fields(
    known={
        "key": names.TAINT_KEY,
        "value": names.LABEL_VALUE,
        "effect": Text(choices=("NoSchedule", "NoExecute", "PreferNoSchedule")),
        "timeAdded": Text(),
    },
    required=("key", "effect"),
)
_CONDITIONS: Final = Many(
    of=Fields(
        known={
            "conditionType": Text(filled=True),
            "operator": Text(choices=("In", "NotIn")),
            "statusValues": Many(of=Text(choices=("True", "False", "Unknown"))),
        },
        required=("conditionType", "operator", "statusValues"),
    )
)
SPEC: Final = Fields(
    known={
        "targetClusters": Fields(known=policies.AFFINITY),
        "addOnConditions": _CONDITIONS,
        "removeOnConditions": _CONDITIONS,
        "taints": Many(of=TAINT, least=1),
    },
    required=("taints",),
)


def rules(spec: object) -> Iterator[Fault]:
    """Yield the faults in the target clusters of a policy; values of the wrong type are ignored here."""
    targets = (as_object(spec) or {}).get("targetClusters")
    yield from policies.affinity_rules(targets, "spec.targetClusters")
