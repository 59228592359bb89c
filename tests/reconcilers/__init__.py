"""The shell around the deciders: ownership, recovery and explanations."""
