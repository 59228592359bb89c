"""Validation with JSON Schemas."""

from jsonschema import Draft202012Validator


def is_valid(schema: dict[str, object], value: object) -> bool:
    return Draft202012Validator(schema).is_valid(value)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
