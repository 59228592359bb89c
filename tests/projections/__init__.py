"""Tests of the read models: folds, restarts, rebuilding."""
