"""Label and field selectors, matched against one set of labels or fields.

The placement package evaluates the same selectors for all clusters.
"""

import enum
from collections.abc import Container, Mapping, Sequence

import msgspec


class Operator(enum.StrEnum):
    """Operators of selectors. Manifests may contain any text as operator, so fields have the type str."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


def is_met(operator: str, value: str | None, values: Container[str | None]) -> bool:
    """Return whether a value satisfies a condition; None is an absent value. An unknown operator is never met."""
    match operator:
        case Operator.IN:
            return value in values
        case Operator.NOT_IN:
            return value not in values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case _:
            return False


class Requirement(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A condition on a key; an unknown operator matches nothing."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, values: Sequence[str]) -> bool:
        """Return whether the values of the key satisfy the condition; pass no values for an absent key."""
        met = (is_met(self.operator, value, self.values) for value in values or (None,))
        return all(met) if self.operator == Operator.NOT_IN else any(met)


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Required labels and conditions on labels; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()

    def requirements(self) -> tuple[Requirement, ...]:
        """Return all conditions, with ``match_labels`` as In requirements."""
        equal = tuple(
            Requirement(key=k, operator=Operator.IN, values=(v,))
            for k, v in sorted(self.match_labels.items())
        )
        return equal + self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a set of labels satisfies all conditions."""
        return all(
            requirement.matches((labels[requirement.key],) if requirement.key in labels else ())
            for requirement in self.requirements()
        )


class FieldSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Conditions on a cluster's provider, region and zone."""

    match_expressions: tuple[Requirement, ...] = ()
