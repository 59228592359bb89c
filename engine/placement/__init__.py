"""The scheduler: pure functions that choose the clusters of a workload.

The signatures that the rest of the engine uses:

- `fleet.Fleet()`: the known clusters as columns.
  `put(cluster: clusters.ClusterManifest)`, `report(name, summary: ResourceSummary | None)` (capacity only,
  cheap), `remove(name: str)`, `get(name: str) -> ClusterManifest | None`, `names() -> tuple[str, ...]`, `len(fleet)`,
  `revision: int` (increases with every change but capacity), `changes: int` (increases with every change),
  `matches(affinity, name) -> bool`.
- `requests.Request(...)`: the scheduler's view of one binding (see its fields).
- `requests.parse_requests(quantities: Mapping[str, Quantity]) -> Requests`: resource requests of one replica; parse
  them once per binding. `None` (no replicaRequirements) differs from an empty tuple.
- `schedule.schedule(request, fleet, *, explain=False) -> decisions.Decision`: one decision. With `request.trigger`
  "None" nothing changes.
- `decision_cache.DecisionCache(fleet).decide(request)`: the same, cached until any fact of a cluster changes.
- `decisions.Decision`: `clusters` (name, replicas) in name order, `columns` (names and replicas as two lists, cheaper
  for thousands of clusters), `changed`, `affinity_name`, `status`, `reason`, `message`, `retry`,
  `records_placement`, `excluded` (reason -> clusters), `available` (name -> free replicas of the chosen clusters),
  `trigger`, `fresh`, `explanation`.
- `triggers.trigger(...) -> str` and `triggers.is_fresh(...) -> bool`: whether a pass is needed, and in which mode.
"""
