"""Replicas on Kafka use the same resource versions, so a client can continue at another replica."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import httpx
import pytest

from tests.builders.manifests import manifest
from tests.kubectl import streams
from tests.kubectl.control_planes import ControlPlane, launched, replica
from tests.kubectl.manifests import OF_ROBOT
from tests.kubectl.streams import Json

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ROUNDS: Final = 5
MAPS: Final = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> Json:
    return manifest("v1", "ConfigMap", name, metadata={"labels": {"of": "replicas"}})


def test_resource_version_of_one_replica_is_valid_at_the_other(control_plane_on_kafka: ControlPlane) -> None:
    with (
        streams.client(control_plane_on_kafka.writing) as writer,
        streams.client(control_plane_on_kafka.reading) as other,
    ):
        made = writer.post(MAPS, json=config_map("version")).raise_for_status().json()
        version = streams.version_of(made)
        assert other.get(f"{MAPS}/version").json() == made, "the same object, byte for byte, under one number"

        seen = other.get(f"{MAPS}/version").json()
        changed = other.put(f"{MAPS}/version", json={**seen, "data": {"a": "1"}})
        assert changed.status_code == 200
        late = writer.put(f"{MAPS}/version", json={**made, "data": {"a": "2"}})
        assert (late.status_code, late.json()["reason"]) == (409, "Conflict")

        listed = writer.get(MAPS, params={"resourceVersion": version, "labelSelector": "of=replicas"}).json()
        again = other.get(MAPS, params={"labelSelector": "of=replicas"}).json()
        assert listed["items"] == again["items"]
        with streams.watching(other, MAPS, version) as events:
            event = next(event for event in events if streams.name_of(_object(event)) == "version")
            assert (event["type"], event["object"]) == ("MODIFIED", changed.json())
        assert writer.delete(f"{MAPS}/version").status_code == 200
        assert other.get(f"{MAPS}/version").status_code == 404


def test_replicas_share_tokens_and_certificate_authority(
    control_plane_on_kafka: ControlPlane, home_directory: Path, tmp_path: Path
) -> None:
    """Neither replica was given a token: the first one creates the token and the authority for all replicas."""
    writing, reading = (
        json.loads(path.read_bytes())
        for path in (control_plane_on_kafka.writing, control_plane_on_kafka.reading)
    )
    assert writing["users"] == reading["users"]
    clusters = [entry["cluster"] for entry in (*writing["clusters"], *reading["clusters"])]
    authorities = {cluster["certificate-authority-data"] for cluster in clusters}
    assert len(authorities) == 1
    kubectl = control_plane_on_kafka.kubectl(home_directory)
    (other,) = {
        entry["cluster"]["server"] for entry in reading["clusters"] if entry["name"] == "karmada-apiserver"
    }
    assert other not in control_plane_on_kafka.writing.read_text()
    assert kubectl("create", "namespace", "signed", "--server", other) == "namespace/signed created\n"

    namespaced = control_plane_on_kafka.kubectl(home_directory, "signed")
    namespaced("create", "serviceaccount", "robot")
    token = namespaced("create", "token", "robot").strip()
    # ``whoami`` goes to the replica for reads; the token was issued by the replica for writes.
    assert "serviceaccount:signed:robot" in namespaced("auth", "whoami", f"--token={token}")
    namespaced("apply", "-f", "-", stdin=OF_ROBOT)
    path = "/api/v1/namespaces/signed/secrets/robot-token"
    with (
        streams.client(control_plane_on_kafka.writing) as writer,
        streams.client(control_plane_on_kafka.reading) as reader,
    ):
        assert writer.get(path).json() == reader.get(path).json()
    namespaced("delete", "namespace", "signed")

    late = replica("late", control_plane_on_kafka.log, tmp_path)
    with launched(late):
        late.wait_until(late.answers)
        shown = json.loads((late.data / "kubeconfig").read_bytes())
        assert shown["users"] == writing["users"]
        assert (late.data / "kube-ca.pem").read_bytes() == (
            control_plane_on_kafka.writing.parent / "kube-ca.pem"
        ).read_bytes()
        (server,) = {entry["cluster"]["server"] for entry in shown["clusters"]}
        assert "namespace/default" in kubectl("get", "ns", "-o", "name", "--server", server)


def test_list_continues_at_another_replica(control_plane_on_kafka: ControlPlane) -> None:
    names = [f"page-{index}" for index in range(5)]
    with (
        streams.client(control_plane_on_kafka.writing) as writer,
        streams.client(control_plane_on_kafka.reading) as other,
    ):
        for name in names:
            writer.post(MAPS, json=config_map(name)).raise_for_status()
        query = {"labelSelector": "of=replicas", "limit": "2"}
        first = writer.get(MAPS, params=query).json()
        rest = other.get(MAPS, params={**query, "limit": "0", "continue": first["metadata"]["continue"]})
        listed = [streams.name_of(item) for item in (*first["items"], *rest.json()["items"])]
        assert listed == names
        for name in names:
            writer.delete(f"{MAPS}/{name}").raise_for_status()


def test_watch_continues_at_another_replica_after_a_kill(
    control_plane_on_kafka: ControlPlane, tmp_path: Path
) -> None:
    """Kill a replica repeatedly during writes; no event may be missed or repeated."""
    mortal = replica("mortal", control_plane_on_kafka.log, tmp_path)
    numbers = itertools.count()
    written: list[str] = []
    seen: list[str] = []

    with launched(mortal), streams.client(control_plane_on_kafka.writing) as writing:
        version = streams.version_of(writing.get(MAPS).json())

        def write(count: int) -> None:
            for _ in range(count):
                name = f"watched-{next(numbers)}"
                writing.post(MAPS, json=config_map(name)).raise_for_status()
                written.append(name)

        for turn in range(ROUNDS):
            mortal.wait_until(mortal.answers)
            with streams.client(mortal.data / "kubeconfig") as dying:
                write(1)
                with streams.watching(dying, MAPS, version) as events:
                    version = _taken(events, seen, len(written))
                    write(3)
                    if turn % 2:
                        version = _taken(events, seen, len(written) - 1)
                    mortal.kill()
                    version = _rest(events, seen, version)
            mortal.launch()
            write(1)
            with (
                streams.client(control_plane_on_kafka.reading) as other,
                streams.watching(other, MAPS, version) as events,
            ):
                version = _taken(events, seen, len(written))
        assert seen == written
        for name in written:
            writing.delete(f"{MAPS}/{name}").raise_for_status()


def _taken(events: Iterator[Json], seen: list[str], count: int) -> str:
    """Consume events until ``count`` objects were seen; return the newest resourceVersion."""
    version = ""
    while len(seen) < count:
        version = _take(next(events), seen)
    return version


def _rest(events: Iterator[Json], seen: list[str], version: str) -> str:
    """Consume the events that were in flight at the kill; an incomplete line at the end is ignored."""
    try:
        for event in events:
            version = _take(event, seen)
    except (httpx.TransportError, ValueError):
        pass
    return version


def _take(event: Json, seen: list[str]) -> str:
    value = _object(event)
    if event["type"] != "BOOKMARK":
        assert event["type"] == "ADDED"
        seen.append(streams.name_of(value))
    return streams.version_of(value)


def _object(event: Json) -> Json:
    return cast("Json", event["object"])
