"""Random moves of a simulated world; each changes the world and returns a one-line description."""
