"""Parsing and formatting of the command line, without a server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from hypothesis import given
from hypothesis import strategies as st

from engine.cli import failures, main, output, serve, server_reads, set_properties, table_rows, yaml_output
from engine.http.pages import binding_values
from engine.objects import bindings, manifests
from engine.objects.clusters import Taint
from engine.objects.manifest_limits import Limits
from events import release
from events.json_values import Json
from events.kube_objects import KubeObject

LIMITS = Limits(content_bytes_max=1 << 20, documents_max=2, depth_max=64, repeated_bytes_max=0)
COMMANDS = [name for name, *_ in main.COMMANDS]
SUBCOMMANDS = [
    "bench failover",
    "bench kafka",
    "bench kube",
    "bench log",
    "bench placement",
    "bench replay",
    "bench storm",
    "log tail",
    "log verify",
    "plan taint",
    "shadow report",
]


def test_ages_are_formatted_as_by_kubectl() -> None:
    assert table_rows.age_text(1_000, 195_000) == "3m14s"
    assert table_rows.age_text(5_000, 0) == "0s"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]))
    | st.sampled_from(
        ["yes", "no", "1:30", "0644", "null", "1e3", "2024-05-25T09:49:51Z", "- a", "a: b", "<<"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcno~10-: ", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcno~10-: ", max_size=6), JSON, min_size=1, max_size=4))
def test_printed_yaml_is_read_back_unchanged(value: dict[str, object]) -> None:
    (document,) = manifests.read(yaml_output.dump(value).encode(), file="printed", limits=LIMITS)

    assert isinstance(document, manifests.Document)
    assert document.value == value


def test_control_characters_are_removed_from_output(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NAME", "A"), [("\x1b[2Jevil\n", "[bold]x[/bold]"), ("b", 2)])

    assert capsys.readouterr().out == "NAME        A\n [2Jevil    [bold]x[/bold]\nb           2\n"


BINDING: dict[str, object] = {
    "metadata": {"name": "foo-deployment", "namespace": "default"},
    "spec": {"clusters": [{"name": "member1", "replicas": 2}, {"name": "member2", "replicas": 1}]},
    "status": {
        "aggregatedStatus": [
            {
                "clusterName": "member1",
                "applied": True,
                "status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            },
            {"clusterName": "member3", "applied": False},
            {"clusterName": "member4", "applied": True, "status": {"replicas": 3, "readyReplicas": 3}},
        ]
    },
}
TEMPLATE: dict[str, object] = {
    "metadata": {"name": "foo", "namespace": "default", "creationTimestamp": "2024-05-25T09:49:51Z"},
    "spec": {"replicas": 3},
}
NOW_MS = 1_716_630_591_000 + 180_000


def test_template_has_a_row_per_current_or_scheduled_cluster() -> None:
    ran = table_rows.runs(bindings.of(KubeObject(BINDING)), {"member1": NOW_MS - 20_000})

    listing = table_rows.template_listing("Deployment", [(KubeObject(TEMPLATE), ran, None)], NOW_MS)

    assert listing.columns == ("NAME", "CLUSTER", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "ADOPTION")
    assert [row[:7] for row in listing.rows] == [
        ("foo", "member1", "1/2", 2, 1, "20s", "Y"),
        ("foo", "member2", "0/1", 0, 0, "3m", "N"),
        ("foo", "member4", "3/3", 0, 0, "3m", "Y"),
    ]


def test_job_is_shown_with_its_state_in_each_cluster() -> None:
    ended: Json = {"succeeded": 4, "conditions": [{"type": "Complete", "status": "True"}]}
    reports: list[Json] = [
        {"clusterName": "member1", "applied": True, "status": ended},
        {"clusterName": "member2", "applied": True, "status": {"active": 2, "succeeded": 1}},
    ]
    clusters = [{"name": name, "replicas": 2} for name in ("member1", "member2", "member3")]
    binding = bindings.of(
        KubeObject({"spec": {"clusters": clusters}, "status": {"aggregatedStatus": reports}})
    )
    listing = table_rows.template_listing(
        "Job", [(KubeObject(TEMPLATE), table_rows.runs(binding, {}), None)], NOW_MS
    )
    assert listing.columns[2:5] == ("STATUS", "ACTIVE", "SUCCEEDED")
    assert [row[1:5] for row in listing.rows] == [
        ("member1", "Complete", 0, 4),
        ("member2", "Running", 2, 1),
        ("member3", "<none>", 0, 0),
    ]
    (row,) = binding_values.rows([binding])
    assert [(bar.finished, bar.ready) for bar in row.bars] == [("Complete", None), ("", 2), ("", None)]


def test_unplaced_template_has_a_row() -> None:
    listing = table_rows.template_listing("Deployment", [(KubeObject(TEMPLATE), [], None)], NOW_MS)

    assert [row[:7] for row in listing.rows] == [("foo", "<none>", "0/3", 0, 0, "3m", "N")]


def test_template_of_an_event_without_a_time_has_an_unknown_age() -> None:
    template = KubeObject({"metadata": {"name": "foo", "creationTimestamp": None}})

    listing = table_rows.template_listing("Deployment", [(template, [], None)], NOW_MS)

    assert [row[5] for row in listing.rows] == ["<unknown>"]


def test_kinds_without_replicas_have_no_counts() -> None:
    listing = table_rows.template_listing(
        "ConfigMap",
        [
            (
                KubeObject(TEMPLATE),
                table_rows.runs(bindings.of(KubeObject(BINDING)), {}),
                bindings.of(KubeObject(BINDING)),
            )
        ],
        NOW_MS,
    )

    assert listing.columns == ("NAME", "CLUSTER", "AGE", "ADOPTION")


def test_absent_values_of_a_replica_interpreter_are_shown_as_none() -> None:
    interpreter: Json = {
        "metadata": {"name": "foos"},
        "spec": {"target": {"apiVersion": "a.io/v1", "kind": "Foo"}},
    }
    kind = server_reads.kind_of("replicainterpreters")

    listing = table_rows.listing(kind, [KubeObject(interpreter)], NOW_MS)

    assert listing.columns == ("NAME", "KIND", "REPLICAS-PATH", "AGE")
    assert [row[:3] for row in listing.rows] == [("foos", "Foo", "<none>")]


@pytest.mark.parametrize(
    ("word", "taint"),
    [
        ("a:NoExecute", Taint(key="a", effect="NoExecute")),
        ("a=b:NoSchedule", Taint(key="a", value="b", effect="NoSchedule")),
        ("example.io/a=b:NoSchedule", Taint(key="example.io/a", value="b", effect="NoSchedule")),
    ],
)
def test_taints_are_parsed_as_by_kubectl(word: str, taint: Taint) -> None:
    assert set_properties.read_taint(word) == taint


@pytest.mark.parametrize("word", ["a", ":NoExecute", "a:", "=b:NoExecute", ""])
def test_invalid_taint_is_a_usage_error(word: str) -> None:
    with pytest.raises(failures.Failure) as caught:
        set_properties.read_taint(word)
    assert caught.value.code == failures.USAGE


@pytest.mark.parametrize(
    ("term", "kind"),
    [("bindings", "ResourceBinding"), ("Policy", "PropagationPolicy"), ("rebalancers", "WorkloadRebalancer")],
)
def test_terms_of_the_documents_name_kinds(term: str, kind: str) -> None:
    assert server_reads.kind_of(term).kind == kind


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "key"),
    [
        ("deploy", "default", "foo", "default/foo-deployment"),
        ("clusterrole", "default", "a:b", "a.b-clusterrole"),
        ("rb", "default", "foo-deployment", "default/foo-deployment"),
        ("wr", "default", "demo", "workloadrebalancer:demo"),
        ("pp", "shop", "p", "propagationpolicy:shop/p"),
        ("cluster", "default", "member1", "cluster:member1"),
        ("Kafka", "default", "k", "default/k-kafka"),
    ],
)
def test_kind_and_name_map_to_one_key(kind: str, namespace: str, name: str, key: str) -> None:
    assert server_reads.key_of(server_reads.kind_of(kind), namespace, name) == key


@pytest.mark.parametrize("command", COMMANDS + SUBCOMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*command.split(), "--help"]) == failures.OK

    shown = capsys.readouterr().out
    assert f"Usage: reballast {command}" in shown
    assert "--no-json" not in shown, "declare the option with negative=(), as options.Server does"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == failures.OK

    shown = capsys.readouterr().out
    assert all(f"│ {name} " in shown for name in COMMANDS)
    assert "Exit codes: 0 done" in shown


def test_time_between_drills_is_read_in_seconds() -> None:
    assert serve.Periodic(drill_every="1h30m").drill_every_s() == 5_400
    assert serve.Periodic().drill_every_s() == 0


@pytest.mark.parametrize(
    ("words", "code", "message", "remedy"),
    [
        ("get deploy --outputt yaml", 2, "unknown option: --outputt. Did you mean --output?", "get --help"),
        ("apply app.yaml", 2, "unexpected argument: app.yaml", "name files with -f"),
        ("scale deploy foo", 2, "missing --replicas", "scale --help"),
        ("get", 2, "missing KIND", "get --help"),
        ("describe deploy/foo deploy/bar", 2, "unexpected argument: deploy/bar", "KIND/NAME"),
        ("log tail -n -3", 2, 'invalid value "-3" for -n. Must be >= 0', "log tail --help"),
        ("create deployment web", 2, 'unknown command "create"', "reballast apply -f FILE"),
        ("plan", 1, "missing change", "reballast plan -f change.yaml"),
        ("plan tant member1 x:NoExecute", 1, '"tant" is not a change that plan knows', "did you mean taint?"),
        (
            "plan taint m1 a:NoSchedule- a:NoSchedule",
            1,
            "cannot both set and remove the taint a:NoSchedule",
            "out",
        ),
        ("plan scale deploy/foo abc", 1, "'abc' is not a number of replicas", "from 0 to 2147483647"),
        (f"plan scale deploy/foo {'9' * 5000}", 1, f"'{'9' * 80}' is not a number of replicas", "from 0 to"),
        ("plan scale foo 40", 1, "missing kind or name of the workload", "plan scale deploy/web 40"),
        ("explain foo", 2, 'missing kind or name: "foo" is not both', "deploy foo, or deploy/foo"),
        ("explain deploy", 2, "missing name of the deploy", "deploy NAME, or deploy/NAME"),
        ("plan fail m1 --horizon 1000h", 1, "--horizon: '1000h' is longer than 7 days", "at most 7d"),
        ("taint member1 a:NoExec", 2, "'NoExec' is not the effect of a taint", "write one of NoSchedule"),
        (
            "plan -f http://a.io/b.yaml",
            1,
            "http://a.io/b.yaml: URLs are not supported",
            "| reballast apply -f -",
        ),
    ],
)
def test_wrong_command_lines_are_reported_with_a_remedy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, code: int, message: str, remedy: str
) -> None:
    assert main.run([*words.split(), "--data", str(tmp_path)]) == code
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: {message}"
    assert remedy in second


def test_help_describes_every_argument_and_option() -> None:
    commands = dict(_commands(main.make_app()))
    assert {*COMMANDS, *SUBCOMMANDS} <= set(commands)
    undescribed = [
        f"{name}: {argument.name}"
        for name, app in commands.items()
        if app.default_command is not None
        for argument in app.assemble_argument_collection()
        if argument.show and not argument.parameter.help
    ]
    assert undescribed == []


def _commands(app: App, before: str = "") -> Iterator[tuple[str, App]]:
    for name in app:
        if not name.startswith("-"):
            yield f"{before}{name}", app[name]
            yield from _commands(app[name], f"{before}{name} ")


def test_help_and_version_are_commands_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["help", "get"]) == failures.OK
    assert "Usage: reballast get" in capsys.readouterr().out
    assert main.run(["version"]) == failures.OK
    assert capsys.readouterr().out == f"reballast {release.RELEASE}\n"


def test_schemas_are_written_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["schema", "--to", str(tmp_path / "schemas")]) == failures.OK

    assert "files written to" in capsys.readouterr().out
    document = json.loads((tmp_path / "schemas" / "asyncapi.json").read_text())
    assert document["asyncapi"].startswith("3.")
    assert (tmp_path / "schemas" / "io.reballast.template-applied.v1.json").exists()
    assert main.run(["schema", "--to", str(tmp_path / "schemas" / "asyncapi.json")]) == failures.FAILED


def test_client_commands_import_neither_the_server_nor_numpy() -> None:
    commands = (
        "get deploy",
        "plan taint m1 a=b:NoExecute",
        "drill",
        "explain deploy web",
        "timeline deploy web",
        "log tail",
    )
    program = (
        "import sys\nfrom engine.cli import main\n"
        "heavy = {'numpy', 'rich', 'starlette', 'uvicorn', 'sqlite3', 'aiohttp', 'cryptography'}\n"
        "for command in sys.argv[1:]:\n"
        "    code = main.run([*command.split(), '--data', '/nonexistent'])\n"
        "    print(command, code, sorted(heavy & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, *commands], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == [f"{command} 3 []" for command in commands]


def test_get_imports_neither_the_simulation_nor_the_views() -> None:
    program = (
        "import sys, engine.cli.get\n"
        "print([name for name in sys.modules if name.startswith(('engine.simulation.state', 'projections.'))])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", ["engine.cli.serve", "engine.process.views.child"])
def test_server_on_a_file_imports_no_client_of_kafka(module: str) -> None:
    program = f"import sys, {module}\nprint(sorted({{'aiokafka', 'httpx._main', 'rich'}} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
