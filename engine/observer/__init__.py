"""Observe another control plane: its objects become events, and its decisions are compared with this engine's."""
