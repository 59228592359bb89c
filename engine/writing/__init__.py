"""The write API: computes changes of objects, appends the events in batches, and answers each writer."""
