"""Plans: predictions of the real engine on a fork of its log."""
