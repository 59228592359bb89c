"""Help texts of the commands that read the log, explain or predict, and of tools."""

from typing import Final

SHADOW: Final = """Compare the decisions of an observed Karmada with Reballast's.

For example:

    reballast shadow report              # numbers by verdict, and examples
    reballast shadow report --json
    reballast shadow explain deploy web -n shop   # why Karmada placed it there

Exit codes of the report: 0 all differences are explained, 2 some are not,
1 error.
"""

PLAN: Final = """Predict the effect of a change before you make it.

The server runs the real engine on a fork of its log, in virtual time, and
writes nothing. A plan shows which workloads move, how many replicas stay ready
meanwhile, which workloads cannot be placed, and when all moves are finished.

    reballast plan -f change.yaml
    reballast plan delete deploy web         # or -f change.yaml
    reballast plan taint member1 maintenance:NoExecute
    reballast plan cordon member1
    reballast plan fail member1 member2      # also --zone, --region, --provider
    reballast plan scale deploy/web 40
    reballast plan rebalance -l app=web
    reballast plan -f change.yaml -o plan.json
    reballast apply --plan plan.json         # refused if the effect changed
    reballast plan check plan.json           # compare with what happened

If the server is `reballast observe`, the plan is for the observed Karmada, now
or --as-of an earlier time. --kubeconfig FILE plans for any Karmada. In both
cases the command copies the Karmada into a temporary server; it only reads it.

Exit codes: 0 nothing changes, 2 something changes, 1 error.
"""

DRILL: Final = """Predict the failure of each cluster, zone, region and provider.

Each failure is predicted as by `reballast plan fail`; nothing is written. The
table shows the numbers of failed clusters, of workloads that move, of workloads
with fewer ready replicas meanwhile, and of replicas that cannot be placed; the
time until all replicas run again; and the additional capacity that is needed.
A zone, region or provider with the same clusters as another failure is left out.

    reballast drill
    reballast drill --by zone --by region --json

Exit codes: 0 all replicas are placed after each failure, 2 replicas are missing
after a failure, 1 error.
"""

EXPLAIN: Final = """Explain why a workload is placed in its clusters.

The engine computes the step that contains the decision again. The output shows,
for each cluster, the filters that excluded it, or its free capacity, weight and
replicas. If capacity was missing, it shows the preempted bindings, or why there are none.
For a preempted binding, it shows the binding that preempted it.

    reballast explain deploy foo
    reballast explain deploy foo --as-of 120
"""

TIMELINE: Final = """List all events about an object, with their causes.

For example:

    reballast timeline deploy foo
    reballast timeline wr demo --json
"""

LOG: Final = """Read and prove the log.

For example:

    reballast log tail              # the newest events, then each new one
    reballast log tail --topic decisions --no-follow
    reballast log verify            # compute every step again and compare
    reballast log checkpoint        # sign the present content of the log
    reballast log export archive    # write the log to files
    reballast log import archive    # make a log from such files
"""

LOG_VERIFY: Final = """Prove the log: compute every step again, and compare the bytes.

Without options the running server does it. With --log the command needs no
server; it opens the log for reading only, in several processes.

    reballast log verify
    reballast log verify --views    # also prove the views
    reballast log verify --log copy/log.sqlite
    reballast log verify --log kafka://kafka-1:9092 --from 120000
    reballast log verify --checkpoint signed.jsonl --public-key my.key.pub

The last example also detects a log that was truncated, or rewritten with valid
digests: the log must contain each signed checkpoint.
"""

LOG_CHECKPOINT: Final = """Sign the present content of the log.

Keep signed checkpoints in a place where writers of the log cannot change them.
A checkpoint contains the digest of each shard's last step, and a digest of all
records. If --to names a file with checkpoints, the new one continues the last.

    reballast log new-key my.key
    reballast log checkpoint --key my.key --to signed.jsonl
    reballast log checkpoint --key my.key      # to standard output

REBALLAST_CHECKPOINT_KEY may contain the key (PEM text) instead. A server can
sign periodically: reballast up --checkpoint-key my.key --checkpoint-every 10m
"""

LOG_TAIL: Final = """Show the newest events, then each new event.

For example:

    reballast log tail
    reballast log tail --topic decisions -n 100 --no-follow
"""

LOG_NEW_KEY: Final = """Make a key pair to sign checkpoints with.

For example:

    reballast log new-key my.key    # writes my.key and my.key.pub
"""

LOG_IMPORT: Final = """Append an exported log to the empty log of a data directory.

For example:

    reballast log export archive
    reballast log import archive --data copy
"""

LOG_EXPORT: Final = """Write the log to files for other programs, with a manifest of digests.

A later call with the same format and filters appends the new records. For that,
give --since as a time: 24h is another time in each call. `reballast log import`
makes a log with the same bytes from jsonl files.

    reballast log export archive
    reballast log export lake --format parquet --topic decisions
    reballast log export shop --format cloudevents -n shop --since 24h
    reballast log import archive --data copy
"""

AUDIT: Final = """Decide every recorded step again with other rules, and show the differences.

Use it before an upgrade, with the new release on the log of the old one; or for
changed policies, as if they had applied from the beginning. It writes nothing
and needs no server.

    reballast audit                             # the rules of this release
    reballast audit --log copy/log.sqlite --from 120000
    reballast audit --toleration-default 300    # seconds, for failed clusters
    reballast audit --policy policy.yaml        # replaces the recorded policy
    reballast audit --policy override.yaml      # shows manifests that differ

Exit codes: 0 no difference, 2 differences, 1 error.
"""

REPLAY: Final = """Fold the log into views again, from its first event, and print counts.

The views are temporary; those of the server do not change. The fold ends at the
end of the log, or at the number or time of --as-of.

    reballast replay
    reballast replay --as-of 120
"""

SCHEDULE: Final = """Make scheduling decisions for JSON lines, without a server.

A line contains clusters, spec, status and appliedPlacement as Karmada writes
them, and an optional id. --explain adds the reason why each cluster was chosen
or excluded.

    reballast schedule questions.jsonl
    cat questions.jsonl | reballast schedule --explain
"""

SCHEMA: Final = """Write the JSON Schemas and the AsyncAPI document of all events.

For example:

    reballast schema                # print the AsyncAPI document
    reballast schema --to schemas/  # write it, and a JSON Schema for each type
"""

COMPLETION: Final = """Print a script that completes commands and options in a shell.

Generating the script takes some seconds, so store it in a file that the shell
reads:

    reballast completion bash > ~/.reballast.bash   # source it in ~/.bashrc
    reballast completion zsh > ~/.reballast.zsh     # source it after compinit
    reballast completion fish > ~/.config/fish/completions/reballast.fish
"""

BENCH: Final = """Measure the speed of parts of Reballast, with a baseline of the same run.

For example:

    reballast bench placement --clusters 1000 --mode dynamic
    reballast bench storm --json
"""
