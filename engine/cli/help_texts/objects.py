"""Help texts of the commands that read and write objects."""

from typing import Final

IMPORT: Final = """Copy an existing Karmada into the running server, without moving workloads.

The command copies namespaces, PriorityClasses, clusters with their status,
policies, override policies and the templates of all bindings. The first
decision about each binding keeps the clusters that it has in Karmada. A report
lists refused objects, and bindings that are placed differently.

    reballast up --no-members                           # in another terminal
    reballast import --kubeconfig karmada.config --dry-run
    reballast import --kubeconfig karmada.config

Exits with 0 if all bindings are placed as before, 2 if not or if an object was
refused.
"""

APPLY: Final = """Create or change the objects in files.

Valid objects are applied; each invalid object is reported with file, line,
field, reason and remedy. If a file no longer contains a field that an earlier
apply set, the field is removed; fields set by `scale` or `label` stay.

    reballast apply -f deployment.yaml
    reballast apply -f policies/ -n shop
    cat app.yaml | reballast apply -f -
    reballast apply --plan plan.json      # if its prediction still holds
"""

DELETE: Final = """Delete objects by file, or by kind and name.

If you delete a template, its workload is removed from all clusters; `kubectl
delete --cascade=orphan` leaves it running there. If you delete a policy, the
workloads that it placed stay. If you delete a namespace, all objects in it are
deleted.

    reballast delete -f deployment.yaml
    reballast delete deploy foo
    reballast delete pp example-policy -n shop
"""

GET: Final = """List objects, with a row for each cluster they run in.

Name kinds as in kubectl: deploy, sts, cm, pp, cpp, wr, rb, crb, clusters, pods,
works, ns. Name a custom kind by its kind, plural or short name: Kafka.

    reballast get deploy
    reballast get deploy foo -o yaml
    reballast get pods -l app=nginx
    reballast get deploy -l 'tier in (gold,silver),!old'
    reballast get rb -A
    reballast get deploy foo bar            # several names
    reballast get deploy,rb,pp              # several kinds
    reballast get deploy/foo rb/foo-deployment --no-headers
    reballast get deploy -w                 # the list, then rows that change
    reballast get deploy -o wide            # with containers, images, policy
    reballast get deploy foo --as-of 10m    # as it was ten minutes ago
    reballast get deploy foo --as-of 2024-05-25T09:49:51Z
    reballast get deploy foo --as-of 120              # number in the log
    reballast get deploy foo --as-of decisions/3/41   # topic/partition/offset
"""

DESCRIBE: Final = """Show one object with its decisions and events.

For example:

    reballast describe deploy foo
    reballast describe cluster member1
    reballast describe pod web-6d4cf56db6-x2v7k    # of a simulated cluster
"""

EDIT: Final = """Change an object in your editor ($VISUAL or $EDITOR).

Your changes are sent as a patch. The patch is refused if another client has
changed the same fields meanwhile.

    reballast edit deploy foo
    reballast edit cluster member1
"""

SCALE: Final = """Set the number of replicas of a workload.

This works for Deployments, StatefulSets, ReplicaSets, Jobs, and custom kinds
with a ReplicaInterpreter or a scale subresource.

    reballast scale deploy nginx --replicas 2
    reballast scale deployment/nginx --replicas=2
"""

LABEL: Final = """Set or remove labels of an object or a cluster.

For example:

    reballast label cluster member1 location=us
    reballast label deploy nginx team=shop --overwrite
    reballast label deploy nginx team-     # removes it
"""
