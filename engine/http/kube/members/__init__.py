"""The APIs of simulated members."""
