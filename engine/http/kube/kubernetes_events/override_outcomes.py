"""Outcome of override policies per cluster, derived from works and the first report on each."""

from collections.abc import Iterator

from events import health, shapes, works

_Work = tuple[str, str, int, int]
"""Key, cluster, term and step of a work."""


class Overrides:
    """Match works with reports, in log order."""

    def __init__(self) -> None:
        self._awaited: dict[_Work, tuple[shapes.OverrideRef, ...]] = {}

    def take(self, data: shapes.Event) -> Iterator[tuple[bool, str]]:
        """For a report on a work with overrides: per policy, whether it was applied, and a message."""
        match data:
            case works.WorkApplied(overrides=overrides) if overrides:
                self._awaited[data.key, data.cluster, data.term, data.step] = overrides
            case health.WorkloadReported(cluster=cluster, fault=fault):
                overrides = self._awaited.pop((data.key, cluster, data.term, data.step), ())
                yield from _outcomes(cluster, fault, overrides)
            case _:
                return


def _outcomes(
    cluster: str, fault: str, overrides: tuple[shapes.OverrideRef, ...]
) -> Iterator[tuple[bool, str]]:
    """Outcome of each policy. Policies are applied in order until one fails.

    A fault that names no policy is attributed to the last one.
    """
    for index, ref in enumerate(overrides):
        message = f"Apply {_policy_text(ref)}({_named(ref)}) for cluster({cluster})"
        mark = f"{ref.kind} {_named(ref)}: "
        if fault.startswith(mark) or (fault and index + 1 == len(overrides)):
            yield False, f"{message} failed. {fault.removeprefix(mark)}"
            return
        yield True, f"{message} succeed."


def _named(ref: shapes.OverrideRef) -> str:
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def _policy_text(ref: shapes.OverrideRef) -> str:
    return "override policy" if ref.namespace else "cluster override policy"
