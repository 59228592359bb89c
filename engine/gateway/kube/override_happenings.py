"""What became of override policies in each cluster: a work names them, the cluster's first report says how it went."""

from collections.abc import Iterator

from events import health, shapes, works

_Work = tuple[str, str, int, int]
"""A work by its binding's key, its cluster and its version."""


class Overrides:
    """Follows works and reports, in the order of the log."""

    def __init__(self) -> None:
        self._awaited: dict[_Work, tuple[shapes.OverrideRef, ...]] = {}

    def take(self, data: shapes.Event) -> Iterator[tuple[bool, str]]:
        """Whether each policy was applied, in words, where a record tells it."""
        match data:
            case works.WorkApplied(overrides=overrides) if overrides:
                self._awaited[data.key, data.cluster, data.term, data.step] = overrides
            case health.WorkloadReported(cluster=cluster, fault=fault):
                for ref in self._awaited.pop((data.key, cluster, data.term, data.step), ()):
                    named = _named(ref)
                    if not fault:
                        yield True, f"Apply {_words(ref)}({named}) for cluster({cluster}) succeed."
                    elif fault.startswith(f"{ref.kind} {named}: "):
                        reason = fault.removeprefix(f"{ref.kind} {named}: ")
                        yield False, f"Apply {_words(ref)}({named}) for cluster({cluster}) failed. {reason}"
            case _:
                return


def _named(ref: shapes.OverrideRef) -> str:
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def _words(ref: shapes.OverrideRef) -> str:
    return "override policy" if ref.namespace else "cluster override policy"
