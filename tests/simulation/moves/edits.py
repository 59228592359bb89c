"""The moves of the profile ``edits``, with their weights; the random choices follow this order."""

from tests.simulation.moves import clusters, faults, overrides, policies, suspensions, templates
from tests.simulation.world import Move

WEIGHTS: dict[Move, int] = {
    templates.apply_template: 8,
    templates.delete_template: 2,
    policies.apply_policy: 6,
    policies.delete_policy: 1,
    clusters.taint: 4,
    clusters.untaint: 4,
    clusters.label: 2,
    clusters.leave: 1,
    clusters.depart: 2,
    clusters.join: 2,
    templates.rebalance: 4,
    templates.allow_deletion: 1,
    suspensions.suspend: 2,
    templates.delete_rebalancer: 1,
    faults.hostile: 2,
    clusters.report_health: 2,
    clusters.report_conditions: 1,
    clusters.apply_taint_policy: 1,
    overrides.apply_override: 3,
    overrides.delete_override: 1,
    faults.fault: 1,
    faults.heal: 2,
    faults.fail_append: 2,
    faults.crash: 2,
    faults.keep_snapshot: 3,
    faults.crash_without_the_newest_snapshot: 1,
    faults.leap: 5,
}
