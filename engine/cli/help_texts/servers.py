"""Help texts of the whole command and of the commands that serve."""

from typing import Final

HEAD: Final = """
Places workloads on many Kubernetes clusters, rebalances them,
and can prove each decision.

Start with:

    reballast up       # a control plane with three simulated clusters
    reballast tour     # watch replicas move, on a temporary server

Then, for example:

    reballast apply -f deployment.yaml
    reballast get deploy
    reballast taint member1 maintenance:NoExecute
    reballast explain deploy foo

With --data, commands connect to the server on that data directory. Otherwise
they connect to the address in REBALLAST_SERVER, with the token in
REBALLAST_TOKEN and for https with the certificate file in REBALLAST_CA.
Without REBALLAST_SERVER they use the default data directory.

Exit codes: 0 done, 1 refused or not found, 2 invalid command line,
3 no server answers. In audit, drill, import, plan and shadow, 2 means that
something changes or differs, and an invalid command line exits with 1.
With --json, errors are JSON objects on standard error.
"""

UP: Final = """Run a control plane with simulated member clusters.

The server stores its data in a directory. After a restart it continues from
there, on the same ports if they are free. The other commands find the server
by the same --data. Ctrl-C stops it. With --json the server prints its addresses
as a JSON object when it is ready.

    reballast up
    reballast up --data ./demo --port 8080
    reballast up --no-members     # without simulated clusters
    reballast up --log kafka://localhost:9092   # log on Kafka, may be shared
    reballast up --host 0.0.0.0 --tls --allowed-host a.lan  # for remote clients
    reballast up --default-not-ready-toleration-seconds 300

By default, policies without a toleration of clusters that are not ready or
unreachable tolerate them for 0 s. The last example gives such policies a
toleration of 300 s for clusters that are not ready. It affects only policies
that are written while the option is set.
"""

WORKER: Final = """Run a worker: make the decisions for some shards of a log on Kafka.

Start any number of workers on any machines; a consumer group distributes the
shards over them. When a worker stops or crashes, the other workers continue
with its shards within seconds.

    reballast worker --log kafka://kafka-1:9092,kafka-2:9092
    REBALLAST_LOG=kafka://kafka-1:9092/production reballast worker
    reballast worker --log kafka://kafka-1:9092 --metrics-port 9100

With --metrics-port the worker serves /healthz, /readyz (ready: it owns all its
assigned shards, and its last turn succeeded) and /metrics for Prometheus,
without a token.

TLS and SASL: kafka://…?tls=true&ca_file=ca.pem&mechanism=SCRAM-SHA-512&username=worker
with the password in REBALLAST_KAFKA_PASSWORD.
"""

OBSERVE: Final = """Observe an existing Karmada, and compare its decisions with Reballast's.

The observer lists and watches objects through Karmada's API and appends each
change to the log. For each decision of Karmada's scheduler it also computes the
decision that Reballast would have made. It writes nothing to Karmada;
engine/observer/cluster-role.yaml contains the rights that it needs.
The log needs a directory of its own (--data), not that of `reballast up`.

    reballast observe --kubeconfig karmada.config
    reballast log tail --topic observations
    reballast shadow report
"""

SCHEDULER: Final = """Schedule for an existing Karmada, for the policies that you choose.

The scheduler observes Karmada as `reballast observe` does, decides about the
bindings whose policy has `schedulerName: reballast`, and writes the decisions
to Karmada. Karmada's own scheduler schedules for all other policies.

    kubectl apply -f engine/scheduler/role.yaml   # the rights that it needs
    reballast scheduler --kubeconfig karmada.config
    kubectl replace --force -f policy.yaml        # has schedulerName: reballast

Several schedulers may run; a Lease determines which one writes.
"""

AGENT: Final = """Run agents for real clusters: apply their works, and report the results.

One process serves all clusters whose configuration files you name. It may run
in a cluster or anywhere else. It connects to the server only by HTTP, with a
separate token for each cluster.

    reballast agent edge-1.agent.json
    reballast agent edge-1.agent.json edge-2.agent.json --grace 20
    reballast agent edge-1.agent.json --metrics-port 9101

With --metrics-port the process serves /healthz, /readyz (ready: the APIs of all
clusters answer) and /metrics for Prometheus, without a token.
"""

API: Final = """Serve the query API and the Kubernetes API on a log on Kafka.

Each server stores its own views in its directory. All servers show the same
objects, and give each record the same number; a write through one server can be
read from any other. REBALLAST_TOKEN sets the token that clients must send.
Without it, the servers on a log create and share one token. They also share the
authority that signs their certificates.

    reballast api --log kafka://kafka-1:9092 --data ./views --port 8080
    reballast api --log kafka://kafka-1:9092 --members   # simulated clusters
    reballast api --log kafka://kafka-1:9092 --host 0.0.0.0 --tls --allowed-host apis.lan

On another machine, with kube-ca.pem from the server's directory:
REBALLAST_SERVER=https://apis.lan:8080 REBALLAST_TOKEN=… REBALLAST_CA=kube-ca.pem reballast get clusters
"""

PROJECTOR: Final = """Update the views in a directory from a log on Kafka, for SQL readers.

The tables are in views.sqlite. `reballast api` does not need a projector; it
updates its own views.

    reballast projector --log kafka://kafka-1:9092 --data ./views
"""

TOUR: Final = """Run the tutorial of the rebalancer step by step, and check each result.

With --data the tour runs on the server of that directory, whose log then
contains the events of the tour. Without --data it runs on the server that
REBALLAST_SERVER names, or else on a temporary server, which is removed at the
end; servers that run already are then not changed.

    reballast tour
    reballast tour --data ~/.local/share/reballast
    reballast tour --json
"""
