"""Commands beside an existing Karmada: observe it, compare its decisions, decide for it, copy it."""
