"""Types and kinds: catalogue, schemas, discovery and OpenAPI documents, and checks of values by type."""
