"""Help texts of the commands on clusters and their faults."""

from typing import Final

JOIN: Final = """Register a real Kubernetes cluster as a member.

The command asks the cluster which kinds it serves, registers it, and writes
the configuration of its agent. The agent applies the cluster's workloads.
A cluster can have only one name. If you join it again with the same name, its
registration and the configuration of its agent are updated.

    reballast join edge-1 --kubeconfig ~/.kube/config --context edge-1
    reballast agent edge-1.agent.json
"""

UNJOIN: Final = """Remove a real cluster from the control plane.

The server removes all works of the cluster. The agent then deletes their
objects in the cluster, and exits. The command waits for this and prints how
many works remain. With --force, the Cluster is removed after the wait even if
works remain; their objects stay in the cluster until its agent runs again and
removes them.

    reballast unjoin edge-1
    reballast unjoin edge-1 --wait 300
    reballast unjoin edge-1 --wait 10 --force
"""

TAINT: Final = """Set or remove taints of a cluster.

A taint is KEY=VALUE:EFFECT or KEY:EFFECT; append - to remove it. EFFECT is
NoSchedule (no new workloads), NoExecute (also evicts the running workloads
that do not tolerate the taint) or PreferNoSchedule (has no effect).
A taint with the same key and effect is replaced.

    reballast taint member1 maintenance=soon:NoSchedule
    reballast taint member1 workload-rebalancer-test:NoExecute
    reballast taint member1 workload-rebalancer-test:NoExecute-
"""

UNTAINT: Final = """Remove taints of a cluster.

KEY:EFFECT removes one taint, KEY removes all taints with this key.

    reballast untaint member1 workload-rebalancer-test:NoExecute
    reballast untaint member1 maintenance
"""

CORDON: Final = """Mark a cluster as unschedulable; its workloads stay.

For example:

    reballast cordon member1
"""

UNCORDON: Final = """Mark a cluster as schedulable again.

For example:

    reballast uncordon member1
"""

MEMBERS: Final = """List the simulated clusters with their faults.

For example:

    reballast members
"""

FAULT: Final = """Add a fault to a simulated cluster.

down       the cluster reports nothing and applies nothing
slow       replicas start 10 times slower (--amount: how many times)
losing     every 2nd report is lost (--amount N: every N-th)
lagging    each API request takes 1000 ms (--amount: milliseconds)
throttled  every 2nd API request is answered 429 (--amount N: every N-th)
failing    every 2nd API request is answered 503 (--amount N: every N-th)

A cluster may have several faults at once; `reballast heal` removes them all.

    reballast fault member1 down
    reballast fault member2 slow --amount 5
    reballast fault member3 losing
    reballast fault member1 failing --amount 3
"""

HEAL: Final = """Remove all faults of a simulated cluster.

The cluster then applies the works that it missed, and sends lost reports again.

    reballast heal member1
"""
