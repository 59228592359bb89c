"""Recorded cases with a deliberately different answer, each with its reason and our answer.

Karmada's scheduler adds 32-bit numbers, which overflow: clusters with capacity for billions of replicas
then seem to have less than none. Here sums are exact, so the same rules find the capacity. Each answer
follows from the case's free pods by the rule next to it.
"""

from typing import Final

WRAPS: Final = "Karmada's 32-bit sum of available replicas wraps around to a negative number"
EMPTY: Final = "no replicas to place: no capacity can be missing, and the sum of 32-bit maxima means nothing"

OURS: Final[dict[str, tuple[str, dict[str, int]]]] = {
    # Aggregated: the cluster with the most free pods gets all of them; the first by name among equals.
    "int32-overflow-A1-0001": (WRAPS, {"member2": 10_000}),
    "int32-overflow-A1-0007": (WRAPS, {"c21": 100}),
    "int32-overflow-A1-0009": (WRAPS, {"edf91z": 100}),
    "int32-overflow-A1-0012": (WRAPS, {"member2": 10_000}),
    # Dynamic weight: in proportion to the free pods. Karmada reads 2147483647 free pods as "not estimated", and uses
    # the number of requested replicas instead, a weight of nearly zero beside billions; recorded cases without
    # overflow show the same.
    "int32-overflow-A1-0002": (WRAPS, {"c14": 43, "c21": 57}),
    "int32-overflow-A1-0003": (WRAPS, {"member1": 2, "member4": 3}),
    "int32-overflow-A1-0011": (WRAPS, {"eu-03": 2, "us-02": 3}),
    "int32-overflow-A1-0015": (WRAPS, {"member2": 3, "member3": 2}),
    "int32-overflow-A1-0016": (WRAPS, {"c0": 2, "c14": 2, "c7": 1}),
    "int32-overflow-A1-0019": (WRAPS, {"cfz": 3_493, "zbc2": 6_507}),
    # Fresh, no replicas, empty propagation: the only selected cluster, with nothing.
    "zero-replicas-A1-0029": (EMPTY, {"us-01": 0}),
}
