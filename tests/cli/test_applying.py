"""``apply`` of files: refusals with file and line, and the events that are written."""

import json
from pathlib import Path

from tests.builders.manifests import definition
from tests.cli.deployments import APP, applied
from tests.cli.servers import Shell

MISSPELT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replcas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: web}
"""


def _specs(shell: Shell) -> list[tuple[str, object]]:
    """Return the Deployments without their statuses, which change by themselves."""
    items = json.loads(shell("get", "deploy", "--json"))["items"]
    return [(deployment["metadata"]["name"], deployment["spec"]) for deployment in items]


def test_value_of_the_wrong_type_is_located(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "port.yaml"
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: port}\ndata: {port: 80}\n"
    path.write_text(text)
    shell("apply", "-f", str(path), code=1)
    position = f"error: {path}:4: document 1: configmap/port"
    refusal = f"{position}: data: is of type number, must be of type string\n  write it in quotes\n"
    assert shell.errors == refusal
    path.write_text(text.replace("80", '"80"'))
    shell("apply", "-f", str(path))
    assert shell("apply", "-f", str(path), "--dry-run") == "configmap/port unchanged (dry run)\n"
    path.write_text(text)
    shell("apply", "-f", str(path), code=1)
    assert shell.errors == refusal
    shell("apply", "-f", str(path), "-n", "absent", code=1)


def test_misspelled_fields_and_unknown_kinds_are_refused(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(MISSPELT)
    before = _specs(shell)

    assert shell("apply", "-f", str(path), code=1) == ""

    assert f"error: {path}:6: document 1: deployment.apps/web: spec.replcas: unknown field\n" in shell.errors
    assert f"error: {path}:11: document 2: " in shell.errors
    assert 'kind: the server has no kind "Gizmo" in example.com/v1\n' in shell.errors
    assert _specs(shell) == before


def test_apply_writes_one_event_and_a_repeated_apply_none(shell: Shell) -> None:
    applied(shell, "once")
    assert shell.apply(APP.replace("NAME", "once")).split() == [
        "deployment.apps/once",
        "unchanged",
        "propagationpolicy.policy.karmada.io/once",
        "unchanged",
    ]
    events = [entry["type"] for entry in json.loads(shell("timeline", "deploy", "once", "--json"))]
    assert events.count("io.reballast.template-applied.v1") == 1


def test_invalid_document_is_reported_with_its_line_and_the_others_are_applied(
    shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.yaml"
    bad = APP.replace("NAME", "two").replace("clusterNames: [member1]", "clusterName: [member1]")
    path.write_text(bad.replace("replicas: 2", "replicas: 2 # fine"))

    assert shell("apply", "-f", str(path), code=1) == "deployment.apps/two created\n"
    assert shell.errors == (
        f"error: {path}:15: document 2: propagationpolicy.policy.karmada.io/two: "
        "spec.placement.clusterAffinity.clusterName: unknown field\n"
        "  correct or remove it, or apply with --validate=warn\n"
    )
    shell("apply", "-f", str(path), "--validate", "warn")
    assert 'Warning: unknown field "spec.placement.clusterAffinity.clusterName"' in shell.errors


def test_custom_kind_is_found_by_all_its_names(shell: Shell) -> None:
    crd = definition("gizmos", "Gizmo")
    crd["spec"]["names"] |= {"singular": "gizmo", "shortNames": ["gz"]}  # type: ignore[index]  # of JSON
    gizmo = "{apiVersion: example.io/v1, kind: Gizmo, metadata: {name: one}}"
    shell.apply(f"{json.dumps(crd)}\n---\n{gizmo}")
    rows = [shell("get", word).splitlines()[1].split()[0] for word in ("Gizmo", "gizmo", "gizmos", "gz")]
    assert rows == ["one"] * 4
    assert "kind: Gizmo" in shell("describe", "gz", "one")
    assert "template-applied" in shell("timeline", "gizmos.example.io", "one")
    shell("delete", "gz", "one")
    assert "one" not in shell("get", "gizmo")
    shell("get", "gizmo", "one", code=1)
    assert 'gizmo.example.io "one" not found' in shell.errors
    shell("get", "gadget", code=1)
    assert 'unknown kind "gadget"' in shell.errors
