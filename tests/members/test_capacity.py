"""Capacity of a member: exact sums, no overcommitment, and the order of admission."""

from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.values import quantity
from engine.simulation import capacity, cluster, reports, rollouts, specs, state
from events import clusters, health, shapes
from tests.members import examples

SMALL = {"cpu": "100m", "memory": "10Mi"}


def _capacity(member: state.MemberState, at_ms: int) -> clusters.CapacityReported:
    return examples.capacity([report.data for report in cluster.advance(member, at_ms)])


def test_replica_is_allocating_from_admission_on_and_allocated_once_ready() -> None:
    member = examples.new_state()
    cluster.apply_work(member, examples.applied("nginx", 3), 0, template=examples.template(**SMALL))
    starting = _capacity(member, 0)
    assert starting.allocatable == {"cpu": "1", "memory": "1Gi", "pods": "10"}
    assert starting.allocated == {"cpu": "0", "memory": "0", "pods": "0"}
    assert starting.allocating == {"cpu": "300m", "memory": "30Mi", "pods": "3"}
    cluster.advance(member, 200)
    running = _capacity(member, 200 + reports.SHIFT_MS)
    assert running.allocated == {"cpu": "300m", "memory": "30Mi", "pods": "3"}
    assert running.allocating == {"cpu": "0", "memory": "0", "pods": "0"}


def test_ready_replicas_are_reported_with_the_next_change_of_free_capacity() -> None:
    member = examples.new_state()
    template = examples.template(cpu="100m")
    events: list[shapes.Event] = []
    for step, at_ms in enumerate(range(0, 900, 300), start=1):
        cluster.apply_work(member, examples.applied("nginx", step, step=step), at_ms, template=template)
        events += [report.data for time in (at_ms, at_ms + 200) for report in cluster.advance(member, time)]
    capacities = [event for event in events if isinstance(event, clusters.CapacityReported)]
    assert [(report.allocated["cpu"], report.allocating["cpu"]) for report in capacities] == [
        ("0", "100m"),
        ("100m", "100m"),
        ("200m", "100m"),
    ]
    assert cluster.due_ms(member) == 800 + reports.SHIFT_MS
    assert _capacity(member, 800 + reports.SHIFT_MS).allocated["cpu"] == "300m"
    assert cluster.due_ms(member) is None


def test_member_that_leaves_drops_the_report_that_it_held_back() -> None:
    member = examples.new_state()
    cluster.apply_work(member, examples.applied("nginx", 1), 0, template=examples.template(**SMALL))
    cluster.advance(member, 0)
    cluster.advance(member, 200)
    assert cluster.due_ms(member) == 200 + reports.SHIFT_MS

    reports.set_joined(member, joined=False)
    assert cluster.advance(member, 300) == []
    assert cluster.due_ms(member) is None


def test_removed_replicas_free_their_capacity_exactly() -> None:
    member = examples.new_state()
    odd = examples.template(cpu="0.0000001", memory="1.5")
    cluster.apply_work(member, examples.applied("nginx", 3), 0, template=odd)
    assert _capacity(member, 0).allocating == {"cpu": "300n", "memory": "4500m", "pods": "3"}
    cluster.apply_work(member, examples.removed("nginx"), 10)
    assert _capacity(member, 10).allocating == {"cpu": "0", "memory": "0", "pods": "0"}


def test_replicas_without_capacity_wait() -> None:
    member = examples.new_state(cpu="250m")
    template = examples.template(cpu="100m")
    cluster.apply_work(member, examples.applied("first", 2), 0, template=template)
    cluster.apply_work(member, examples.applied("second", 2), 0, template=template)
    cluster.advance(member, 0)
    cluster.advance(member, 200)
    report = _capacity(member, 200 + reports.SHIFT_MS)
    assert (report.allocated["cpu"], report.allocating["cpu"]) == ("200m", "200m")
    assert member.workloads[examples.key_of("second")].pending == 2

    cluster.apply_work(member, examples.removed("first"), 1300)
    cluster.advance(member, 1300)
    events = [report.data for report in cluster.advance(member, 1500)]
    assert examples.ready(events) == {("member1", examples.key_of("second")): (2, 2)}


def test_longest_waiting_replica_is_admitted_first() -> None:
    member = examples.new_state(cpu="100m", startup_ms=0)
    template = examples.template(cpu="100m")
    for at_ms, name in enumerate(("runs", "z-waits-first", "a-waits-second")):
        cluster.apply_work(member, examples.applied(name, 1), at_ms, template=template)
    cluster.advance(member, 2)
    cluster.apply_work(member, examples.removed("runs"), 10)
    events = [report.data for report in cluster.advance(member, 10)]
    assert examples.ready(events) == {("member1", examples.key_of("z-waits-first")): (1, 1)}


def test_request_of_a_missing_resource_is_never_admitted() -> None:
    member = examples.new_state()
    graphics = examples.template(**{"nvidia.com/gpu": "1"})
    cluster.apply_work(member, examples.applied("nginx", 1), 0, template=graphics)
    assert _capacity(member, 0).allocating["nvidia.com/gpu"] == "1"
    assert cluster.advance(member, 10_000) == []


def test_requests_beyond_any_capacity_are_reported_as_the_largest_quantity() -> None:
    member = examples.new_state()
    huge = examples.template(cpu="9" * 60 + "e40")
    for step in (1, 2):
        cluster.apply_work(member, examples.applied("nginx", step, step=step), 0, template=huge)
        events = [report.data for report in cluster.advance(member, step * reports.SHIFT_MS)]
    assert examples.capacity(events).allocating["cpu"] == str(2**63 - 1)


def test_capacity_of_several_node_sizes_is_summed() -> None:
    big = specs.NodeGroup(count=2, allocatable={"cpu": "1500m", "pods": "10"})
    small = specs.NodeGroup(count=3, allocatable={"cpu": "500m", "pods": "5"})
    total = capacity.capacity_of((big, small))
    assert capacity.total_quantities(total, total.allocatable) == {"cpu": "4500m", "pods": "35"}


NAMES = ("a", "b", "c", "d")
MOVES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(-1, 12),
        st.sampled_from(("0", "1m", "120m", "0.3")),
        st.integers(0, 150),
    ),
    max_size=40,
)


@given(moves=MOVES, startup_ms=st.sampled_from((0, 100)))
def test_allocations_never_exceed_capacity_nor_ready_replicas_the_requested(
    moves: list[tuple[str, int, str, int]], startup_ms: int
) -> None:
    member = examples.new_state(startup_ms=startup_ms)
    at_ms = 0
    for step, (name, replicas, cpu, passed_ms) in enumerate(moves, start=1):
        at_ms += passed_ms
        if replicas < 0:
            cluster.apply_work(member, examples.removed(name, step=step), at_ms)
        else:
            work = examples.applied(name, replicas, step=step)
            cluster.apply_work(member, work, at_ms, template=examples.template(cpu=cpu))
        for sent in cluster.advance(member, at_ms):
            match sent.data:
                case clusters.CapacityReported() as report:
                    _check_report(member, report)
                case health.WorkloadReported() as report:
                    assert 0 <= report.ready <= report.replicas
                case _:
                    pass
        _check_sums(member)


def _check_report(member: state.MemberState, report: clusters.CapacityReported) -> None:
    for resource, allocatable in report.allocatable.items():
        assert quantity.nano_units(report.allocated[resource]) <= quantity.nano_units(allocatable)
    pods = sum(workload.admitted + workload.pending for workload in member.workloads.values())
    assert int(report.allocated["pods"]) + int(report.allocating["pods"]) == pods


def _check_sums(member: state.MemberState) -> None:
    """Assert that the sums equal those computed from scratch."""
    again = capacity.capacity_of(member.spec.nodes)
    for workload in (group for parent in member.workloads.values() for group in rollouts.groups(parent)):
        capacity.add(again.pending, workload.template.amounts, workload.pending)
        for cohort in workload.cohorts:
            sums = again.running if cohort.running else again.starting
            capacity.add(sums, workload.template.amounts, cohort.count)
    for sums, fresh in (
        (member.capacity.running, again.running),
        (member.capacity.starting, again.starting),
        (member.capacity.pending, again.pending),
    ):
        assert {name: amount for name, amount in sums.items() if amount} == {
            name: amount for name, amount in fresh.items() if amount
        }
