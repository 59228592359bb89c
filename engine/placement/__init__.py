"""The scheduler: pure functions that choose the clusters of a workload; ``schedule.schedule`` is the entry."""
