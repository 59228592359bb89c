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
                overrides = self._awaited.pop((data.key, cluster, data.term, data.step), ())
                yield from _told(cluster, fault, overrides)
            case _:
                return


def _told(cluster: str, fault: str, overrides: tuple[shapes.OverrideRef, ...]) -> Iterator[tuple[bool, str]]:
    """Policies are applied in order, up to the first that can't be; what is wrong with the whole is the last one's."""
    for index, ref in enumerate(overrides):
        words = f"Apply {_words(ref)}({_named(ref)}) for cluster({cluster})"
        mark = f"{ref.kind} {_named(ref)}: "
        if fault.startswith(mark) or (fault and index + 1 == len(overrides)):
            yield False, f"{words} failed. {fault.removeprefix(mark)}"
            return
        yield True, f"{words} succeed."


def _named(ref: shapes.OverrideRef) -> str:
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name


def _words(ref: shapes.OverrideRef) -> str:
    return "override policy" if ref.namespace else "cluster override policy"
