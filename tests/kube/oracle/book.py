"""All stories, by name."""

from typing import Final

from tests.kube.oracle import objects, stories, stories_of_kinds, stories_of_reading
from tests.kube.oracle.playing import Story

_TOLD: Final[list[Story]] = [
    stories.names,
    stories.generated_names,
    stories.metadata,
    stories.heads,
    stories.replacing,
    stories.json_patches,
    stories.merge_patches,
    stories.strategic_patches,
    stories.applying,
    stories.deleting,
    stories.deleting_many,
    stories.fields,
    stories_of_reading.selectors,
    stories_of_reading.pages,
    stories_of_reading.watching,
    stories.scaling,
    stories.writing_statuses,
    stories_of_reading.custom_kinds,
    stories_of_reading.definitions,
    stories_of_reading.namespaces,
    stories_of_reading.paths,
    stories_of_reading.reviews,
    stories_of_reading.rights,
]

STORIES: Final[dict[str, Story]] = {
    **{
        f"one_of_{path.rpartition('/')[2]}": stories.of_kind(path, value)
        for path, value in objects.KINDS.items()
    },
    **{getattr(story, "__name__", ""): story for story in _TOLD},
    **{f"wrong_{name}": story for name, story in stories_of_kinds.WORKLOADS.items()},
    **{f"wrong_{name}": story for name, story in stories_of_kinds.OTHERS.items()},
}
