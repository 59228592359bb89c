"""JSON Schemas and an AsyncAPI 3 document of all events, for producers in other languages.

Both are generated from the structs that the engine decodes, so they always match the engine.
"""

from typing import Final

import msgspec

from events import catalogue, records, topics
from events.json_values import Json

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ASYNCAPI: Final = "3.0.0"
REF: Final = "#/components/schemas/{name}"


def json_schemas() -> dict[str, Json]:
    """Return a self-contained JSON Schema (2020-12) of each event's data, by CloudEvents type."""
    result: dict[str, Json] = {}
    for entry in catalogue.EVENT_TYPES:
        (root,), definitions = msgspec.json.schema_components([entry.struct], ref_template="#/$defs/{name}")
        result[entry.type] = {
            "$schema": _DIALECT,
            "$id": f"urn:reballast:{entry.type}",
            **root,
            "$defs": definitions,
        }
    return result


def asyncapi(version: str) -> Json:
    """Return the AsyncAPI 3 document of all topics and messages; ``version`` is the product's release."""
    structs = [entry.struct for entry in catalogue.EVENT_TYPES]
    roots, schemas = msgspec.json.schema_components(structs, ref_template=REF)
    messages = {
        entry.type: {
            "name": entry.type,
            "title": entry.struct.__name__,
            "summary": (entry.struct.__doc__ or "").partition("\n")[0],
            "contentType": "application/json",
            "headers": _headers(entry.type),
            "payload": root,
        }
        for entry, root in zip(catalogue.EVENT_TYPES, roots, strict=True)
    }
    return {
        "asyncapi": _ASYNCAPI,
        "info": {
            "title": "Reballast",
            "version": version,
            "description": "Events in CloudEvents 1.0, binary content mode; structured mode is taken too.",
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(topic) for name, topic in topics.TOPICS.items()},
        "operations": {name: _operation(name) for name in topics.TOPICS},
        "components": {"messages": messages, "schemas": schemas},
    }


def _headers(event_type: str) -> Json:
    text = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "properties": {
            "ce_specversion": {"const": records.SPEC_VERSION},
            **{f"{records.PREFIX}{name}": text for name in records.ATTRIBUTES},
            "ce_type": {"const": event_type},
            "ce_time": {"type": "string", "format": "date-time"},
        },
        "required": ["ce_specversion", *(f"{records.PREFIX}{name}" for name in records.REQUIRED)],
    }


def _channel(topic: topics.Topic) -> Json:
    return {
        "address": topic.name,
        "description": f"Carries {topic.carries}. Key: {topic.key}.",
        "messages": {
            entry.type: {"$ref": f"#/components/messages/{entry.type}"}
            for entry in catalogue.EVENT_TYPES
            if entry.topic == topic.name
        },
        "bindings": {
            "kafka": {"topic": topic.name, "partitions": topic.partitions, "bindingVersion": "0.5.0"}
        },
    }


def _operation(topic: str) -> Json:
    written = topic in (topics.SPECS, topics.POLICIES, topics.CLUSTERS, topics.HEALTH)
    return {
        # AsyncAPI describes the engine's side: it receives the topics that producers send to.
        "action": "receive" if written else "send",
        "channel": {"$ref": f"#/channels/{topic}"},
    }
