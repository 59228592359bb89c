"""What runs in the members, and what they must run; and how any list is printed."""

from typing import Final

from engine.cli import failures, listing, reading, showing
from engine.cli.client import Client, Json
from engine.cli.listing import Listing
from events import forms_kinds as kinds

PODS: Final = frozenset({"pod", "pods", "po"})
WORKS: Final = frozenset({"work", "works", "wk"})
_WHOLE: Final = frozenset({"yaml", "json", "name"})


def show_pods(client: Client, name: str, *, namespace: str, labels: str, form: str) -> None:
    """Prints the pods of all members, in karmadactl's columns."""
    answer = client.find("members/pods", namespace=namespace, labelSelector=labels)
    if answer is None:
        raise failures.Failure("there are no simulated members to ask for pods")
    pods = [each for each in listing.items(answer.get("items")) if name in {"", each.get("name")}]
    if name and not pods:
        raise failures.Failure(f'pods "{name}" not found')
    if form in _WHOLE:
        show_whole([_pod(each) for each in pods], form=form, single=bool(name))
        return
    now_ms = reading.now_ms()
    columns = ("NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE")
    rows: list[listing.Row] = [
        (
            each.get("name"),
            each.get("cluster"),
            "1/1" if each.get("ready") else "0/1",
            each.get("phase"),
            each.get("restarts", 0),
            showing.age(now_ms - int(str(each.get("createdMs", now_ms)))),
        )
        for each in pods
    ]
    if not namespace:
        columns = ("NAMESPACE", *columns)
        rows = [(each.get("namespace"), *row) for each, row in zip(pods, rows, strict=True)]
    show_table(Listing(columns, (), rows), wide=False)


def show_works(client: Client, *, form: str, as_of: str) -> None:
    """Prints what each cluster must run."""
    works = list(reading.pages(client, "works", asOf=as_of))
    if form in _WHOLE:
        show_whole(works, form="json" if form == "json" else "yaml", single=False)
        return
    rows: list[listing.Row] = [
        (
            each.get("cluster"),
            each.get("binding"),
            listing.part(each, "resource").get("kind"),
            each.get("replicas", "-"),
            "Y" if each.get("suspended") else "N",
        )
        for each in works
    ]
    show_table(Listing(("CLUSTER", "BINDING", "KIND", "REPLICAS", "SUSPENDED"), (), rows), wide=False)


def show_table(table: Listing, *, wide: bool) -> None:
    """Prints a table, its wide columns only when asked for; says so where it is empty."""
    if not table.rows:
        showing.warn("No resources found.")
        return
    columns = (*table.columns, *table.wide) if wide else table.columns
    showing.table(columns, [row[: len(columns)] for row in table.rows])


def show_whole(documents: list[Json], *, form: str, single: bool) -> None:
    """Prints objects whole: one as it is, several as a List."""
    if form == "name":
        for each in documents:
            found = kinds.known(str(each.get("apiVersion")), str(each.get("kind")))
            word = found.resource if found else str(each.get("kind")).lower()
            showing.say(showing.clean(f"{word}/{listing.named(each)}"))
        return
    value = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    (showing.json if form == "json" else showing.yaml)(value)


def _pod(pod: Json) -> Json:
    """A member's pod in the form of Kubernetes, as far as it is known."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.get("name"),
            "namespace": pod.get("namespace"),
            "labels": pod.get("labels", {}),
            "annotations": {"resource.karmada.io/cached-from-cluster": pod.get("cluster")},
        },
        "status": {"phase": pod.get("phase")},
    }
