"""Nesting depth of a record's JSON, computed before the record is decoded.

JSON decoders fail where the interpreter's stack ends, which differs between processes; a verdict must be the
same in all of them. So the depth is counted here, in a few passes over the bytes, which need not be valid
JSON.
"""

import re
from typing import Final

# A string without a closing quote matches up to the end of the input, so each byte is scanned only once.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_deeper(value: bytes, levels: int) -> bool:
    """Return whether arrays and objects are nested more than ``levels`` deep."""
    if value.count(b"[") + value.count(b"{") <= levels:
        return False
    left = _STRING.sub(b"", value).translate(_BRACKETS, _OTHERS)
    for level in range(levels):
        # Each pass removes all innermost pairs of brackets, which is one level.
        inner = left.replace(b"[]", b"")
        if len(inner) == len(left):
            return level + left.count(b"[") > levels
        left = inner
    return b"[" in left
