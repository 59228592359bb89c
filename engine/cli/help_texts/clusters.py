"""Help texts of the commands on clusters and their faults."""

from typing import Final

JOIN: Final = """Make a real Kubernetes cluster a member.

It asks the cluster which kinds it serves, registers it, and writes the
configuration of its agent, which applies what the cluster must run.

    reballast join edge-1 --kubeconfig ~/.kube/config --context edge-1
    reballast agent edge-1.agent.json
"""

UNJOIN: Final = """Let a real cluster leave.

All works of the cluster are withdrawn; its agent removes the workloads, and
ends. The command waits for it, and prints what is left. If no agent runs, the
cluster leaves at once with --force; its workloads stay until an agent comes
back.

    reballast unjoin edge-1
    reballast unjoin edge-1 --wait 300
    reballast unjoin edge-1 --wait 10 --force
"""

TAINT: Final = """Set or take away taints of a cluster.

A taint is KEY=VALUE:EFFECT or KEY:EFFECT, with - at the end to take it away.
EFFECT is NoSchedule (nothing new comes), NoExecute (what runs there leaves
too, unless it tolerates the taint) or PreferNoSchedule (nothing follows).
A taint with the same key and effect is replaced.

    reballast taint member1 maintenance=soon:NoSchedule
    reballast taint member1 workload-rebalancer-test:NoExecute
    reballast taint member1 workload-rebalancer-test:NoExecute-
"""

UNTAINT: Final = """Take away taints of a cluster.

KEY:EFFECT takes away one, KEY all with this key.

    reballast untaint member1 workload-rebalancer-test:NoExecute
    reballast untaint member1 maintenance
"""

CORDON: Final = """Let nothing new onto a cluster; what runs there stays.

    reballast cordon member1
"""

UNCORDON: Final = """Let a cluster be chosen again.

    reballast uncordon member1
"""

MEMBERS: Final = """List the simulated clusters with their faults.

    reballast members
"""

FAULT: Final = """Put a fault on a simulated cluster.

down says and does nothing; slow takes longer to start replicas (10 times, or
--amount); losing loses each second report (or each --amount-th). The other
faults meet clients of the cluster's API: lagging answers each request after
1000 (or --amount) milliseconds; throttled refuses each second (or --amount-th)
with 429, failing with 503. A cluster may have several at once; heal takes
them all off.

    reballast fault member1 down
    reballast fault member2 slow --amount 5
    reballast fault member3 losing
    reballast fault member1 failing --amount 3
"""

HEAL: Final = """Take all faults off a simulated cluster.

It applies the works that it missed, and sends lost reports again.

    reballast heal member1
"""
