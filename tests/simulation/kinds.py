"""Simulation profile ``kinds``: custom kinds, Jobs, cluster-scoped templates and policies, imports, all placements."""

from typing import Final

import msgspec

from engine.simulation import defaults, specs
from events import clusters
from tests.builders.manifests import CONFIG_MAP, DEPLOYMENT, FLINK, JOB, STATEFUL_SET
from tests.simulation import world
from tests.simulation.moves import edits, imports, kinds, templates
from tests.simulation.world import Move, Scope

_FLINK_API: Final = clusters.ApiKind(group_version=FLINK[0], kinds=(FLINK[1],))

MEMBERS: Final[list[specs.MemberSpec]] = [
    msgspec.structs.replace(
        spec, region=f"region{index % 2}", apis=defaults.APIS if index == 0 else (*defaults.APIS, _FLINK_API)
    )
    for index, spec in enumerate(world.MEMBERS)
]
"""The members of the other profiles, in two regions; the first one does not serve the custom kind."""

SCOPE: Final = Scope(selects=(DEPLOYMENT, CONFIG_MAP, STATEFUL_SET, JOB, FLINK), is_varied=True)

WEIGHTS: Final[dict[Move, int]] = {
    **edits.WEIGHTS,
    kinds.apply_kind: 10,
    kinds.delete_kind: 2,
    kinds.recreate_kind: 2,
    kinds.interpret: 3,
    kinds.interpret_no_more: 1,
    kinds.apply_cluster_policy: 4,
    kinds.delete_cluster_policy: 1,
    imports.import_template: 2,
    templates.recreate: 1,
}
