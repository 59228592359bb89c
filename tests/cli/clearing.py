"""Deletes what a test leaves on a server that tests share."""

import json
from pathlib import Path
from typing import Any, Final

from tests.cli.servers import Shell

KINDS: Final = ("deploy", "pp", "hpa", "cm", "clustertaintpolicy", "crd")
"""Kinds of the objects to delete; objects of custom kinds are deleted with the definition of their kind."""


def cleared(shell: Shell, scratch: Path) -> None:
    """Delete all objects, taints and labels of a test; return when the members have reported that nothing runs."""
    left = [document for kind in KINDS for document in listed(shell, kind, "-A")]
    left += [namespace for namespace in listed(shell, "ns") if namespace["metadata"]["name"] == "shop"]
    if left:
        scratch.write_text("\n---\n".join(map(json.dumps, left)))
        shell("delete", "-f", str(scratch))
    for cluster in listed(shell, "clusters"):
        name, taints = cluster["metadata"]["name"], cluster["spec"].get("taints", ())
        if taints:
            shell("untaint", name, *{taint["key"] for taint in taints})
        if "tier" in cluster["metadata"]["labels"]:
            shell("label", "cluster", name, "tier-")
    shell.until_true(lambda: is_idle(shell))


def listed(shell: Shell, *words: str) -> Any:  # noqa: ANN401  # JSON
    return json.loads(shell("get", *words, "--json"))["items"]


def is_idle(shell: Shell) -> bool:
    """Whether no binding exists, and all members report the same used capacity: that of their own pods."""
    names = {namespace["metadata"]["name"] for namespace in listed(shell, "ns")}
    summaries = [cluster["status"]["resourceSummary"] for cluster in listed(shell, "clusters")]
    taken = [(summary.get("allocated"), summary.get("allocating")) for summary in summaries]
    return (
        "shop" not in names
        and not listed(shell, "rb", "-A")
        and all(amounts == taken[0] for amounts in taken)
    )
