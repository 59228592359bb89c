"""The query API: reads of the projections and of the log, as JSON."""
