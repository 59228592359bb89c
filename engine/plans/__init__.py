"""Plans: the effect of a change, predicted by the real engine on a fork of the log in virtual time."""
