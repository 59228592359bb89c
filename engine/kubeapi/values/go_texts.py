"""Values in the notation of Go's ``%v``, which some Kubernetes errors use: ``map[image:nginx ports:[80]]``."""

from typing import Final

from events.json_values import as_list, as_object

_CHARS_MAX: Final = 1_024


def of(value: object) -> str:
    """Return the text of a value, cut at 1,024 characters."""
    text = _text(value)
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}…"


def _text(value: object) -> str:
    fields, items = as_object(value), as_list(value)
    if fields is not None:
        return f"map[{' '.join(f'{name}:{_text(item)}' for name, item in sorted(fields.items()))}]"
    if items is not None:
        return f"[{' '.join(map(_text, items))}]"
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)
