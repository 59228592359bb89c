"""Help texts of the commands that read and write objects."""

from typing import Final

IMPORT: Final = """Copy an existing Karmada into the running server, such that nothing moves.

Namespaces, PriorityClasses, clusters with their status, policies, overrides
and the templates of all bindings are copied; each binding's first decision here
takes its placement over. A report lists what was refused or placed otherwise.

    reballast up --no-members                           # in another terminal
    reballast import --kubeconfig karmada.config --dry-run
    reballast import --kubeconfig karmada.config

Exits with 0 if all bindings are placed as before, 2 if not.
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
