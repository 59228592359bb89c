"""Planned writes: computed as real ones, refused as real ones, but collected instead of appended."""

from collections.abc import Sequence

import msgspec

from engine.karmada.default_tolerations import TolerationSeconds
from engine.log import port
from engine.writing import tracing
from engine.writing.appending import Appending, Writing
from engine.writing.execution import Turn, WriteExecution, raised
from engine.writing.mutations import Action, Mutated, Mutation, Problem, Written
from engine.writing.stored_objects import StoredObject, Views
from engine.writing.targets import Target
from events import keys
from events.records import Record
from events.validation.verdicts import Head
from projections import clusters


class PlannedWrites:
    """A ``write_api.Writes`` for one plan; ``records`` are those that its changes would append, in order.

    Each change is computed from the objects as they are stored. Of the changes before it, it sees only new namespaces.
    """

    def __init__(
        self, log: port.NumberedLog, views: Views, appending: Appending, tolerated: TolerationSeconds
    ) -> None:
        self.tolerated = tolerated
        self.records: list[Record] = []
        self._views = _PlannedViews(views)
        self._execution = WriteExecution(log, self._views, appending)
        self._appending = appending

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Compute one mutation; ``dry_run`` makes no difference. Raises StatusError if it is refused."""
        del dry_run
        turn = Turn(0, mutation, tracing.current(), body_bytes)
        answer = raised((await self._execution.carry_out([turn], dry_run=True, source=source))[0])
        if isinstance(answer, Written):
            writing = Writing(mutation.target, answer.mutated.events, turn.trace)
            self.records += self._appending.records_of([writing], source)
            self._views.take(mutation.target, answer.mutated)
        return answer


class _PlannedViews:
    """``Views`` that also have the namespaces that a plan creates, so that it can create objects in them."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._namespaces: dict[str, StoredObject] = {}

    def take(self, target: Target, mutated: Mutated) -> None:
        """Remember the namespace that a change creates, if it does."""
        if mutated.action == Action.CREATED and target.key == keys.object_key("Namespace", "", target.name):
            head = Head(1, 1, "", 0, "", target.api_version, target.kind, target.name)
            manifest = msgspec.json.encode(mutated.value)
            self._namespaces[target.key] = StoredObject(number=0, head=head, manifest=manifest)

    async def settle(self, number: int) -> None:
        await self._views.settle(number)

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        planned = {key: self._namespaces[key] for key in object_keys if key in self._namespaces}
        return {**planned, **await self._views.objects(object_keys)}

    async def cluster(self, name: str) -> clusters.Cluster | None:
        return await self._views.cluster(name)
