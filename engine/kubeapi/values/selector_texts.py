"""Label selectors in kubectl's notation: ``app=web,tier in (gold,silver),!old``."""

import operator

from engine.kubeapi.values.selectors import Operator
from events.json_values import Json, list_at, object_at, objects_at


def of(selector: Json) -> str:
    """Return a label selector in kubectl's notation, ordered by key; empty if it has no conditions."""
    words = [(key, f"{key}={value}") for key, value in object_at(selector, "matchLabels").items()]
    words += [(str(item.get("key")), _expression(item)) for item in objects_at(selector, "matchExpressions")]
    return ",".join(word for _key, word in sorted(words, key=operator.itemgetter(0)))


def _expression(requirement: Json) -> str:
    key, values = requirement.get("key"), ",".join(sorted(map(str, list_at(requirement, "values"))))
    match requirement.get("operator"):
        case Operator.IN:
            return f"{key} in ({values})"
        case Operator.NOT_IN:
            return f"{key} notin ({values})"
        case Operator.DOES_NOT_EXIST:
            return f"!{key}"
        case _:
            return str(key)
