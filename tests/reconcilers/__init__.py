"""The shell around the deciders: ownership, recovery, verification and explanations."""
