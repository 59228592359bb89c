"""Columns of tables, by groups of kinds."""
