"""The shell round the deciders: owning, recovering, proving and explaining."""
