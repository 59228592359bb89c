"""Help texts of the commands that answer questions, and of tools."""

from typing import Final

SHADOW: Final = """Compare the decisions of an observed Karmada with ours.

    reballast shadow report              # how many are the same, and examples
    reballast shadow report --json
    reballast shadow explain deploy web -n shop   # why Karmada placed it there

Exit code of the report: 0 all are explained, 2 some are not, 1 error.
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

REPLAY: Final = """Fold the log again, from the first event on.

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
