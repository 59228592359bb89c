"""Help texts of the commands; the first line is shown in the list of commands.

They are separate from the commands, so that the list can be shown without loading any of them.
"""

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

It keeps its data in a directory, from which it goes on when it is started
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
It counts for policies that are written from then on.
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

IMPORT: Final = """Copy an existing Karmada into the running server, such that nothing moves.

Namespaces, PriorityClasses, clusters with their status, policies, overrides
and the templates of all bindings are copied; each binding's first decision here
takes its placement over. A report lists what was refused or placed otherwise.

    reballast up --no-members                           # in another terminal
    reballast import --kubeconfig karmada.config --dry-run
    reballast import --kubeconfig karmada.config

Exits with 0 if all bindings are placed as before, 2 if not.
"""

SHADOW: Final = """Compare the decisions of an observed Karmada with ours.

    reballast shadow report              # how many are the same, and examples
    reballast shadow report --json
    reballast shadow explain deploy web -n shop   # why Karmada placed it there

Exit code of the report: 0 all are explained, 2 some are not, 1 error.
"""

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

APPLY: Final = """Create or change objects as files say.

What is right is applied; what is wrong is reported with file, line, field,
reason and remedy. A field that is left out of a file goes away if it came
by apply; what scale or label set stays.

    reballast apply -f deployment.yaml
    reballast apply -f policies/ -n shop
    cat app.yaml | reballast apply -f -
    reballast apply --plan plan.json      # a saved plan, if it still holds
"""

DELETE: Final = """Delete objects by file, or by kind and name.

A deleted template is withdrawn everywhere; a deleted policy leaves what it
placed; a deleted namespace takes with it what is in it.

    reballast delete -f deployment.yaml
    reballast delete deploy foo
    reballast delete pp example-policy -n shop
"""

GET: Final = """List objects, with a row for each cluster they run in.

Kinds have the names that kubectl knows: deploy, sts, cm, pp, cpp, wr, rb,
crb, clusters, pods, works, ns. Kinds of others go by their name: Kafka.

    reballast get deploy
    reballast get deploy foo -o yaml
    reballast get pods -l app=nginx
    reballast get deploy -l 'tier in (gold,silver),!old'
    reballast get rb -A
    reballast get deploy,rb,pp              # several kinds
    reballast get deploy -w                 # the list, then what changes
    reballast get deploy -o wide            # with containers, images, policy
    reballast get deploy foo --as-of 10m    # as it was ten minutes ago
    reballast get deploy foo --as-of 2024-05-25T09:49:51Z
    reballast get deploy foo --as-of 120              # a number of the log
    reballast get deploy foo --as-of decisions/3/41   # topic/partition/offset
"""

DESCRIBE: Final = """Show one object with its decisions and events.

    reballast describe deploy foo
    reballast describe cluster member1
"""

EDIT: Final = """Change an object in your editor ($VISUAL or $EDITOR).

Your changes are sent as a patch; it is refused if another client has changed
the object meanwhile.

    reballast edit deploy foo
    reballast edit cluster member1
"""

SCALE: Final = """Set the number of replicas.

Of Deployments, StatefulSets, ReplicaSets, Jobs, and of kinds that have a
ReplicaInterpreter.

    reballast scale deploy nginx --replicas 2
    reballast scale deployment/nginx --replicas=2
"""

LABEL: Final = """Set or take away labels of an object or a cluster.

    reballast label cluster member1 location=us
    reballast label deploy nginx team=shop --overwrite
    reballast label deploy nginx team-     # takes it away
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

It catches up with what it missed, and says again what was lost.

    reballast heal member1
"""

PLAN: Final = """Show the effect of a change before it is made.

The server runs the real engine on a fork of its log, in virtual time, and
writes nothing: which workloads move, how many replicas stay ready meanwhile,
what cannot be placed, and after how long all is settled.

    reballast plan -f change.yaml
    reballast plan taint member1 maintenance:NoExecute
    reballast plan fail member1 member2      # also --zone, --region, --provider
    reballast plan scale deploy/web 40
    reballast plan rebalance -l app=web
    reballast plan -f change.yaml -o plan.json
    reballast apply --plan plan.json         # exactly that, or a refusal
    reballast plan check plan.json           # did it happen as predicted?

Beside reballast observe, a plan is about the Karmada that it observes, now or
--as-of an earlier time; --kubeconfig FILE plans for any Karmada. The command
makes a copy of it in a temporary server; Karmada is only read.

Exits with 0 if nothing changes, 2 if something does, 1 if the plan fails.
"""

DRILL: Final = """Predict the failure of each cluster, zone, region and provider.

Each failure runs on a fork of the log, as with reballast plan fail; nothing is
written. The table shows how many clusters are down, how many workloads move and
how many have fewer ready replicas meanwhile, how many replicas find no place,
when all runs again, and what capacity is needed.

    reballast drill
    reballast drill --by zone --by region --json

Exits with 0 if each failure is absorbed, 2 if one is not, 1 if the drill fails.
"""

EXPLAIN: Final = """Say why a workload is where it is.

The step that decided is computed again and shows, for each cluster, which
filters it failed, or its free capacity, its weight and its replicas. If capacity
was missing, it shows which bindings were preempted, for which other, or why none.

    reballast explain deploy foo
    reballast explain deploy foo --as-of 120
"""

TIMELINE: Final = """List all events that touched a workload, with their causes.

    reballast timeline deploy foo
    reballast timeline wr demo --json
"""

LOG: Final = """Read and prove the log.

    reballast log tail              # the newest events, and new ones
    reballast log tail --topic decisions --no-follow
    reballast log verify            # every step again, to the same bytes
    reballast log checkpoint        # sign what the log holds now
    reballast log export archive    # the log as files, and back: log import
"""

LOG_VERIFY: Final = """Prove the log: compute every step again, to the same bytes.

Without options the running server does it. With --log it needs no server: it
opens the log for reading only, in several processes.

    reballast log verify
    reballast log verify --views    # and the views, folded again
    reballast log verify --log copy/log.sqlite
    reballast log verify --log kafka://kafka-1:9092 --from 120000
    reballast log verify --checkpoint signed.jsonl --public-key my.key.pub

The last one also finds a log that was cut or rewritten with right digests:
each checkpoint that was signed must be in it.
"""

LOG_CHECKPOINT: Final = """Sign what the log holds now, to be kept where no one can change it.

A checkpoint holds the digest of each shard's last step and one over all
records. Where --to names a file, it continues the last checkpoint in it.

    reballast log new-key my.key
    reballast log checkpoint --key my.key --to signed.jsonl
    reballast log checkpoint --key my.key      # to standard output

The key may also be in REBALLAST_CHECKPOINT_KEY (its PEM text). A server does it
by itself: reballast up --checkpoint-key my.key --checkpoint-every 10m
"""

LOG_EXPORT: Final = """Write the log to files for other programs, with a manifest of digests.

A later call with the same options appends what is new. `reballast log import`
makes a log of jsonl files that has the same bytes.

    reballast log export archive
    reballast log export lake --format parquet --topic decisions
    reballast log export shop --format cloudevents -n shop --since 24h
    reballast log import archive --data copy
"""

AUDIT: Final = """Decide every recorded step again with other rules, and show what differs.

Before an upgrade: the new release on the log of the old one. Or with changed
policies, as if they had always been so. Nothing is written, no server needed.

    reballast audit                             # the rules of this release
    reballast audit --log copy/log.sqlite --from 120000
    reballast audit --toleration-default 300    # of clusters that fail, in s
    reballast audit --policy policy.yaml        # as if it had been the policy
    reballast audit --policy override.yaml      # manifests that would differ

Exit code: 0 all is the same, 2 something differs, 1 error.
"""

REPLAY: Final = """Compute what the log says again, from the first event on.

The views are folded again, up to now or to a number or time, and counted.

    reballast replay
    reballast replay --as-of 120
"""

SCHEDULE: Final = """Decide where workloads go, for JSON lines, without a server.

A line holds clusters, spec, status and appliedPlacement as Karmada writes
them, and an optional id. --explain adds why each cluster is in or out.

    reballast schedule questions.jsonl
    cat questions.jsonl | reballast schedule --explain
"""

SCHEMA: Final = """Write the JSON Schemas and the AsyncAPI document of all events.

    reballast schema                # the AsyncAPI document, to the terminal
    reballast schema --to schemas/  # that and a JSON Schema for each type
"""

COMPLETION: Final = """Print a script that completes commands and options in a shell.

Making it takes some seconds, so keep it in a file that the shell reads:

    reballast completion bash > ~/.local/share/bash-completion/completions/reballast
    reballast completion zsh > ~/.reballast.zsh     # source it in ~/.zshrc, after compinit
    reballast completion fish > ~/.config/fish/completions/reballast.fish
"""

BENCH: Final = """Measure how fast it is, beside a baseline of the same run.

    reballast bench placement --clusters 1000 --mode dynamic
    reballast bench storm --json
"""
