"""What a binding and a cluster are, and how events change them: one fold for deciders and projections."""
