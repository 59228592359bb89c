"""All stories, by name."""

from typing import Final

from tests.kube.oracle import objects
from tests.kube.oracle.playing import Story
from tests.kube.oracle.stories import bodies, patches, reading, subresources, writes
from tests.kube.oracle.stories.invalid import classes, other_kinds, workloads

_TOLD: Final[list[Story]] = [
    bodies.names,
    bodies.generated_names,
    bodies.metadata,
    bodies.heads,
    writes.replacing,
    patches.json_patches,
    patches.merge_patches,
    patches.strategic_patches,
    patches.applying,
    writes.deleting,
    writes.deleting_many,
    bodies.fields,
    reading.selectors,
    reading.pages,
    reading.watching,
    subresources.scaling,
    subresources.writing_statuses,
    reading.custom_kinds,
    reading.definitions,
    reading.namespaces,
    reading.paths,
    reading.reviews,
    reading.rights,
]

_FLOW_SCHEMAS: Final = f"/apis/{objects.FLOW_CONTROL}/flowschemas"
"""An API server changes the status of FlowSchemas at any time, so only responses to their creation are recorded."""

STORIES: Final[dict[str, Story]] = {
    **{
        f"one_of_{path.rpartition('/')[2]}": writes.of_kind(path, value)
        for path, value in objects.KINDS.items()
        if path != _FLOW_SCHEMAS
    },
    **{getattr(story, "__name__", ""): story for story in _TOLD},
    **{f"wrong_{name}": story for name, story in workloads.WORKLOADS.items()},
    **{f"wrong_{name}": story for name, story in other_kinds.OTHERS.items()},
    **{f"wrong_{name}": story for name, story in classes.CLASSES.items()},
}
