"""Where a workload goes: the pure heart of the scheduler.

The signatures that the rest of the engine uses:

- `fleet.Fleet()`: the known clusters as columns.
  `put(cluster: clusters.ClusterManifest)`, `report(name, summary: ResourceSummary | None)` (capacity only,
  cheap), `remove(name: str)`, `get(name: str) -> ClusterManifest | None`, `names() -> tuple[str, ...]`, `len(fleet)`,
  `revision: int` (moves when anything but capacity changes), `moves: int` (with everything),
  `matches(affinity, name) -> bool`.
- `requests.Request(...)`: one binding as the decision sees it (see its fields).
- `requests.parse_requests(quantities: Mapping[str, Quantity]) -> Requests`: what one replica asks for; do it once for
  each binding. `None` (no replicaRequirements) differs from an empty one.
- `schedule.schedule(request, fleet, *, explain=False) -> decisions.Decision`: one decision. `request.trigger` "None"
  leaves everything as it is.
- `answers.Answers(fleet).decide(request)`: the same, remembered for as long as nothing is said of the clusters.
- `decisions.Decision`: `clusters` (name, replicas) in name order, `columns` (the same as names and replicas side by
  side, cheaper for thousands of clusters), `changed`, `affinity_name`, `status`, `reason`,
  `message`, `retry`, `records_placement`, `excluded` (reason -> clusters), `available` (name -> free replicas of the
  chosen clusters), `trigger`, `fresh`, `explanation`.
- `triggers.trigger(...) -> str` and `triggers.is_fresh(...) -> bool`: whether a pass is needed, and in which mode.
"""
