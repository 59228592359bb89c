"""Policies, a rebalancer and full members, for the scenarios of the rebalance guide."""

from engine.kubeapi.values import quantity
from events.json_values import at
from tests.seeds.users import User, filled, text

CROWDED = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: PREFERENCE}
"""

WEIGHTED = "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
BALLAST = ("94", "88", "82")
"""Weights, and so replicas, of the ballast in each member; a replica fills one of the 100 nodes."""
NODE_MILLI_CORES = 32_000
NGINX_NODES = 12


def crowded(preference: str) -> str:
    """Return a policy for nginx in two clusters, with this division of replicas."""
    return CROWDED.replace("PREFERENCE", preference)


def primary_and_backup() -> str:
    """Return the guide's policy for nginx in member1, or else in member2."""
    policy = filled("propagation/affinities-primary-and-backup").removesuffix("    #...\n")
    return f"{policy}    replicaScheduling: {{replicaSchedulingType: Divided}}\n"


def rebalancer() -> str:
    """Return the guide's rebalancer, for nginx."""
    return text("rebalance/single").replace("demo-deploy", "nginx")


def fill(user: User, *weights: str) -> None:
    """Fill this many nodes of each member."""
    manifest = text("own/ballast")
    for old, new in zip(BALLAST, weights, strict=True):
        manifest = manifest.replace(f"weight: {old}", f"weight: {new}")
    user.apply(manifest)
    user.until_placed("ballast-deployment", ", ".join(f"member{n}:{w}" for n, w in enumerate(weights, 1)))
    user.until_running("ballast-deployment")


def free_capacity(user: User) -> None:
    """Delete the ballast; wait until members report no more used nodes than those that the replicas of nginx fill."""
    user("delete", "deploy", "ballast")
    user.until_true(lambda: _nodes_taken(user) == NGINX_NODES, lambda: str(user.taken()))


def _nodes_taken(user: User) -> int:
    """Return how many nodes the members report as taken; their own pods need a small part of one."""
    cpu = (
        quantity.ceil_milli(quantity.nano_units(str(at(summary, part, "cpu") or 0)))
        for summary in user.taken().values()
        for part in summary
    )
    return sum(cpu) // NODE_MILLI_CORES
