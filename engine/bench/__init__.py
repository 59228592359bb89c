"""Measurements that print their own baseline."""
