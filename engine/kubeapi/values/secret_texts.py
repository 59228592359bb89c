"""Texts of Secrets: ``stringData`` is the form in which clients may write values of ``data``."""

import base64
from collections.abc import Mapping


def encoded(texts: Mapping[str, object]) -> dict[str, str]:
    """Return the texts of ``stringData``, by key, as values of ``data``: their UTF-8 in base64."""
    return {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
