"""A scheduler of an existing Karmada: decides on the bindings that name it, and writes the decisions back."""
