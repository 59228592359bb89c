"""Help texts of the whole command and of the commands that serve."""

from typing import Final

HEAD: Final = """
Schedules and rebalances workloads over many Kubernetes clusters,
and can prove each decision.

Start with:

    reballast up       # a control plane with three simulated clusters
    reballast tour     # in another terminal: watch replicas move

Then, for instance:

    reballast apply -f deployment.yaml
    reballast get deploy
    reballast taint member1 maintenance:NoExecute
    reballast explain deploy foo

Exit codes: 0 done, 1 refused or not found, 2 wrong command line,
3 no server answers. With --json, errors are JSON objects on standard error.
"""

UP: Final = """Run a control plane with simulated member clusters.

It keeps its data in a directory, from which it continues when it is started
again, on the same ports where they are free. The other commands find it by
the same --data. Ctrl-C stops it. With --json it prints where it listens as a
JSON object, once it is ready.

    reballast up
    reballast up --data ./demo --port 8080
    reballast up --no-members     # without simulated clusters
    reballast up --log kafka://localhost:9092   # on Kafka, beside other processes
    reballast up --host 0.0.0.0 --tls --allowed-host reballast.lan  # for others too
    reballast up --default-not-ready-toleration-seconds 300

Policies that don't say how long they tolerate clusters that are not ready, or
can't be reached, tolerate them not at all; the last example gives them time.
It applies to policies that are written from then on.
"""

WORKER: Final = """Decide: own a share of the shards of a log on Kafka.

Start as many as you like, anywhere: a consumer group spreads the shards over
those that are there. When one ends, however it ends, the others go on with
its shards within seconds.

    reballast worker --log kafka://kafka-1:9092,kafka-2:9092
    REBALLAST_LOG=kafka://kafka-1:9092/production reballast worker
    reballast worker --log kafka://kafka-1:9092 --metrics-port 9100

With --metrics-port it answers /healthz, /readyz (it owns what it was given,
and its last turn did not fail) and /metrics, for Prometheus, without a token.

TLS and SASL: kafka://…?tls=true&ca_file=ca.pem&mechanism=SCRAM-SHA-512&username=worker
with the password in REBALLAST_KAFKA_PASSWORD.
"""

OBSERVE: Final = """Observe an existing Karmada, and compare its decisions with ours.

It lists and watches through Karmada's API, appends each change to the log, and
decides for each decision of Karmada's scheduler what it would have decided.
Nothing is written to Karmada; engine/observer/cluster-role.yaml has its rights.

    reballast observe --kubeconfig karmada.config
    reballast log tail --topic observations
    reballast shadow report
"""

SCHEDULER: Final = """Decide for an existing Karmada, policy by policy.

It observes Karmada as `reballast observe` does, decides on the bindings whose
policy says `schedulerName: reballast`, and writes the decisions to Karmada.
Other policies stay with Karmada's own scheduler.

    kubectl apply -f engine/scheduler/role.yaml          # its rights
    reballast scheduler --kubeconfig karmada.config
    kubectl replace --force -f policy.yaml               # a policy of its own

Several may run; a Lease decides which one writes.
"""

AGENT: Final = """Serve real clusters: apply what they must run, report what becomes of it.

One process serves as many as you name, next to them or anywhere else. It
speaks to the server only by HTTP, with a token of its own for each cluster.

    reballast agent edge-1.agent.json
    reballast agent edge-1.agent.json edge-2.agent.json --grace 20
    reballast agent edge-1.agent.json --metrics-port 9101

With --metrics-port it answers /healthz, /readyz (the API of every cluster
answers) and /metrics, for Prometheus, without a token.
"""

API: Final = """Serve the query API and the Kubernetes API on a log on Kafka.

Each server keeps views of its own in its directory; all of them show the same
under the same numbers, and a write through one can be read on any other.
REBALLAST_TOKEN is the token that clients must show; without it one is made, the
same for all servers on the log, as is the authority behind their certificates.

    reballast api --log kafka://kafka-1:9092 --data ./views --port 8080
    reballast api --log kafka://kafka-1:9092 --members   # simulated clusters too
    reballast api --log kafka://kafka-1:9092 --host 0.0.0.0 --tls --allowed-host apis.lan

Elsewhere, with kube-ca.pem from the server's directory:
REBALLAST_SERVER=https://apis.lan:8080 REBALLAST_TOKEN=… REBALLAST_CA=kube-ca.pem reballast get clusters
"""

PROJECTOR: Final = """Keep the views in a directory level with a log on Kafka.

The tables (views.sqlite) are for readers that use SQL; the server of
reballast api keeps its own.

    reballast projector --log kafka://kafka-1:9092 --data ./views
"""

TOUR: Final = """Play the rebalancer's tutorial step by step.

Each step's numbers are checked against what the engine answers. Without
--data it plays on a private server, which is removed in the end, also where
another one runs. With --data it plays on the server of that directory, whose
log then has the story.

    reballast tour
    reballast tour --data ~/.local/share/reballast
    reballast tour --json
"""
