"""Label and field selectors: which clusters (or templates) a rule means.

Only the yes or no for one set of labels or fields; how that is spread over a whole fleet is the placement's job.
"""

from collections.abc import Mapping, Sequence

import msgspec


class Requirement(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One condition on a key: In, NotIn, Exists, DoesNotExist (any other operator matches nothing)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, held: Sequence[str]) -> bool:
        """Whether the values held under the key satisfy the condition; an absent key holds nothing."""
        match self.operator:
            case "In":
                return any(value in self.values for value in held)
            case "NotIn":
                return not any(value in self.values for value in held)
            case "Exists":
                return bool(held)
            case "DoesNotExist":
                return not held
            case _:
                return False


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Labels that must be there, and conditions on labels; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()

    def requirements(self) -> tuple[Requirement, ...]:
        """All conditions in one form."""
        equal = tuple(
            Requirement(key=k, operator="In", values=(v,)) for k, v in sorted(self.match_labels.items())
        )
        return equal + self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether one set of labels satisfies all conditions."""
        return all(
            requirement.matches((labels[requirement.key],) if requirement.key in labels else ())
            for requirement in self.requirements()
        )


class FieldSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Conditions on a cluster's provider, region and zone."""

    match_expressions: tuple[Requirement, ...] = ()
