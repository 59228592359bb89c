"""What every implementation of a port must keep: one suite, inherited by each of them."""
