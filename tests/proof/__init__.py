"""Proofs: verification, signed checkpoints, audits."""
