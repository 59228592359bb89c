"""Moves of imports: templates whose annotation names the placement that they had in another control plane."""

import msgspec

from events import imported_placements, keys
from tests.builders import inputs
from tests.simulation.moves import templates
from tests.simulation.world import World

_ELSEWHERE = "elsewhere"
"""A cluster that is never a member here."""


async def import_template(world: World) -> str:
    """Import a Deployment or ConfigMap with its clusters, sometimes with its policy or a cluster that is no member."""
    chance = world.chance
    kind, name = chance.choice(world.scope.kinds), chance.choice(world.scope.workloads)
    clusters = chance.sample([*world.names, _ELSEWHERE], chance.randrange(1, 4))
    imported: dict[str, object] = {
        "clusters": {cluster: chance.randrange(4) if kind == "Deployment" else 0 for cluster in clusters}
    }
    if chance.random() < 0.5:
        policy = chance.choice(world.scope.policies)
        imported["policy"] = {"kind": "PropagationPolicy", "name": policy, "namespace": "default"}
        if chance.random() < 0.5:
            imported["placement"] = '{"clusterAffinity": {"clusterNames": ["member1"]}}'
    document = templates.template(world, kind, name)
    text = msgspec.json.encode(imported).decode()
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    document["metadata"] = metadata | {"annotations": {imported_placements.ANNOTATION: text}}
    key = inputs.key(name, ("apps/v1" if kind == "Deployment" else "v1", kind))
    await world.submit(inputs.applied(document), key, keys.shard_of(key))
    return f"import {key} {imported} {document.get('spec', '')}"
