"""Parsing, changing and formatting of image names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overrides import images

_DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nginx", ("", "nginx", "", "")),
        ("a" * 255, ("", "a" * 255, "", "")),
        ("nginx:1.27", ("", "nginx", "1.27", "")),
        ("library/nginx", ("", "library/nginx", "", "")),
        ("docker.io/library/nginx:1.27", ("docker.io", "library/nginx", "1.27", "")),
        ("localhost/a", ("localhost", "a", "", "")),
        ("registry.example:10443/a/b", ("registry.example:10443", "a/b", "", "")),
        (f"k8s.gcr.io/pause@{_DIGEST}", ("k8s.gcr.io", "pause", "", _DIGEST)),
        (f"nginx:1.27@{_DIGEST}", ("", "nginx", "1.27", _DIGEST)),
    ],
)
def test_image_name_is_parsed(text: str, parts: tuple[str, str, str, str]) -> None:
    image = images.parse(text)
    assert (image.registry, image.repository, image.tag, image.digest) == parts


@pytest.mark.parametrize(
    "text", ["", "Nginx", "a b", "nginx:", "nginx@sha256:ab", "/nginx", "a//b", "a" * 256]
)
def test_invalid_image_name_is_refused(text: str) -> None:
    with pytest.raises(images.ImageError):
        images.parse(text)


@pytest.mark.parametrize(
    ("text", "component", "operator", "value", "new"),
    [
        ("nginx:1.27", "Registry", "add", "mirror.example", "mirror.example/nginx:1.27"),
        ("docker.io/nginx", "Registry", "add", ":5000", "docker.io:5000/nginx"),
        ("docker.io/nginx", "Registry", "replace", "mirror.example", "mirror.example/nginx"),
        ("docker.io/nginx:1", "Registry", "remove", "", "nginx:1"),
        ("docker.io/nginx:1", "Repository", "add", "-slim", "docker.io/nginx-slim:1"),
        ("docker.io/nginx:1", "Repository", "replace", "team/web", "docker.io/team/web:1"),
        ("docker.io/nginx:1", "Repository", "remove", "", "docker.io/:1"),
        ("nginx:1", "Tag", "add", "-slim", "nginx:1-slim"),
        ("nginx", "Tag", "add", "2", "nginx:2"),
        ("nginx:1", "Tag", "replace", "2", "nginx:2"),
        ("nginx:1", "Tag", "replace", _DIGEST, f"nginx@{_DIGEST}"),
        (f"nginx@{_DIGEST}", "Tag", "replace", "2", "nginx:2"),
        ("nginx:1", "Tag", "remove", "", "nginx"),
        (f"nginx:1@{_DIGEST}", "Registry", "add", "mirror.example", f"mirror.example/nginx:1@{_DIGEST}"),
        (f"nginx:1@{_DIGEST}", "Repository", "replace", "web", f"web:1@{_DIGEST}"),
        (f"nginx:1@{_DIGEST}", "Tag", "replace", "2", "nginx:2"),
        (f"nginx:1@{_DIGEST}", "Tag", "add", "-slim", "nginx:1-slim"),
        (f"nginx:1@{_DIGEST}", "Tag", "remove", "", "nginx"),
        (f"nginx@{_DIGEST}", "Tag", "remove", "", "nginx"),
        ("nginx:1", "Tag", "replace", ":2", "nginx:1"),
        ("nginx:1", "Tag", "replace", "", "nginx:1"),
    ],
)
def test_image_component_is_changed(text: str, component: str, operator: str, value: str, new: str) -> None:
    assert str(images.changed(images.parse(text), component, operator, value)) == new


@given(
    st.sampled_from(["", "docker.io", "localhost", "r.example:5000"]),
    st.from_regex(r"[a-z0-9]{1,9}(/[a-z0-9]{1,9}){0,2}", fullmatch=True),
    st.sampled_from(["", "1", "latest", "v1.2.3-rc_1"]),
    st.sampled_from(["", _DIGEST]),
)
def test_image_name_round_trips(registry: str, repository: str, tag: str, digest: str) -> None:
    image = images.Image(registry=registry, repository=repository, tag=tag, digest=digest)
    assert images.parse(str(image)) == image
