"""Dependencies, the policies that propagate them with their workloads, and the clusters that run them."""

from events import decisions, shapes
from tests.builders.inputs import key, policy, template
from tests.builders.manifests import CONFIG_MAP, DUPLICATED, SECRET, on, selector
from tests.deciders.story import Story

SETTINGS = key("settings", CONFIG_MAP)
KEYS = key("keys", SECRET)
WEB = key("web")
MEMBERS = ("member1", "member2", "member3")


def with_deps(
    *clusters: str, name: str = "p", of: str = "", preserves: bool = False, conflict: str = "Abort"
) -> shapes.Event:
    """A policy that places Deployments (or one) on these clusters with their dependencies."""
    selectors = [selector(of)] if of else []
    placement = on(*clusters, scheduling=DUPLICATED)
    return policy(
        name,
        placement,
        *selectors,
        propagateDeps=True,
        preserveResourcesOnDeletion=preserves,
        conflictResolution=conflict,
    )


def settings_map(value: str = "1") -> shapes.Event:
    return template("settings", CONFIG_MAP, fields={"data": {"a": value}})


def secret() -> shapes.Event:
    return template("keys", SECRET, fields={"data": {}})


async def clusters_running(story: Story, object_key: str) -> list[str]:
    """Return the clusters that run an object, according to their works."""
    return sorted(await story.running(object_key))


async def required_by(story: Story, object_key: str) -> dict[str, tuple[str, ...]]:
    """Return which binding needs an object in which clusters, from the newest decision."""
    dependents: dict[str, tuple[str, ...]] = {}
    for decision in await story.recorded(decisions.BindingRequired, object_key):
        dependents |= {
            f"{dependent.namespace}/{dependent.name}": dependent.clusters
            for dependent in decision.required_by
        }
    return {by: clusters for by, clusters in dependents.items() if clusters}
