"""How deep the JSON of a record is nested, told before it is read.

Decoders stop where the interpreter's stack ends, which differs from one process to the next; a verdict must not.
So depth is counted here, in a few passes over the bytes, whether they are JSON or not.
"""

import re
from typing import Final

# Without a closing quote a string reaches to the end, so that no byte is looked at twice.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_deeper(value: bytes, levels: int) -> bool:
    """Whether lists and objects stand in one another over more than so many levels."""
    if value.count(b"[") + value.count(b"{") <= levels:
        return False
    left = _STRING.sub(b"", value).translate(_BRACKETS, _OTHERS)
    for level in range(levels):
        # Each pass takes the innermost pairs away, and so one level.
        inner = left.replace(b"[]", b"")
        if len(inner) == len(left):
            return level + left.count(b"[") > levels
        left = inner
    return b"[" in left
