"""The shape of stored structs: fields, their stored names and types, of the struct and of all structs in it."""

import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import inspect


def digest(*structs: type[msgspec.Struct]) -> str:
    """Return a digest that changes with the encoding of these structs, whatever their classes are called."""
    lines = (line for struct in structs for line in _lines(inspect.type_info(struct), []))
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def _lines(info: inspect.Type, above: list[type]) -> Iterator[str]:
    match info:
        case inspect.StructType(cls=cls, fields=fields, array_like=array_like):
            if cls in above:
                yield f"struct {above.index(cls)}"
                return
            yield f"struct {array_like}"
            for field in fields:
                yield f"{'' if array_like else field.encode_name}: {field.required}"
                yield from _lines(field.type, [*above, cls])
            yield "end"
        case inspect.UnionType(types=types):
            yield "union"
            for member in types:
                yield from _lines(member, above)
            yield "end"
        case inspect.DictType(key_type=key, value_type=value):
            yield "dict"
            yield from _lines(key, above)
            yield from _lines(value, above)
        case inspect.TupleType(item_types=items):
            yield "tuple"
            for item in items:
                yield from _lines(item, above)
            yield "end"
        case inspect.CollectionType(item_type=item):
            yield "collection"
            yield from _lines(item, above)
        case inspect.EnumType(cls=cls):
            yield f"enum {[member.value for member in cls]}"
        case _:
            yield type(info).__name__
