"""YAML in kubectl's style: sorted keys, lists not indented, double quotes only where needed."""

from collections.abc import Callable
from typing import Final, cast

import yaml

from engine.objects import manifest_yaml
from engine.objects.manifest_limits import Unreadable

_TEXT: Final = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """Write ambiguous text in double quotes, and multi-line text as a block."""

    def ignore_aliases(self, data: object) -> bool:
        """Never emit anchors and aliases."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    resolve = cast("Callable[..., str]", dumper.resolve)  # pyright: ignore[reportUnknownMemberType]
    plain = resolve(yaml.ScalarNode, text, (True, False)) == _TEXT and _is_read_as_text(text)
    style = "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar(_TEXT, text, style)  # pyright: ignore[reportUnknownMemberType]


def _is_read_as_text(text: str) -> bool:
    """Whether this project's YAML reader, which differs from YAML 1.1, reads the unquoted text as a string."""
    try:
        return isinstance(manifest_yaml.plain(text), str)
    except Unreadable:
        return False


_Dumper.add_representer(str, _text)


def dump(value: object) -> str:
    """Serialize a JSON value as YAML."""
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1000)
