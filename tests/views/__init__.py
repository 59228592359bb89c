"""The views in a process of their own."""
