"""The error of exports and imports."""


class ExportError(Exception):
    """A log cannot be exported or imported; the message says why."""
