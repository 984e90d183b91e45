"""What a fit on a cluster costs by step, its prediction at a size nobody here has, and the
reduction at that size simulated event by event.

The rates of arithmetic and memory are measured here on one core; those of the network are given.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass

import numpy as np

from comtl.partitions.workers import BRANCHES


@dataclass(frozen=True)
class Size:
    """A problem: rows, stored cells, features, tasks, columns of the factors."""

    rows: float
    cells: float
    features: float
    tasks: float
    width: int
    sparse: bool


@dataclass(frozen=True)
class Cluster:
    """Machines, cores of each, and the rates of one core and of one network card."""

    machines: int
    cores: int
    flops: float
    memory: float
    network: float = 1.25e9
    latency: float = 2e-3
    task_overhead: float = 2e-4
    partitions: int = 10


def measured() -> tuple[float, float, float]:
    """Operations a second of a thin product, bytes a second of a pass, adds of arrays (bytes/s)."""
    X, V = np.ones((200_000, 100)), np.ones((100, 10))
    X @ V
    start = time.perf_counter()
    for _ in range(3):
        X @ V
    product = (time.perf_counter() - start) / 3
    one, other = np.ones(10_000_000), np.ones(10_000_000)
    one += other
    start = time.perf_counter()
    for _ in range(5):
        one += other
    add = (time.perf_counter() - start) / 5
    return 2 * X.size * 10 / product, X.nbytes / product, other.nbytes / add


def steps(size: Size, cluster: Cluster) -> list[tuple[str, float, float, float, float]]:
    """Name, how often a sweep, operations and bytes of all workers, bytes of the client."""
    Z, P, T, K = size.cells, size.features, size.tasks, size.width
    stored = 12 * Z if size.sparse else 8 * Z
    shared = 8 * P * K
    return [
        ("conjugate gradients, one product", 3, 4 * Z * K, stored, 2 * shared + 16 * T),
        ("scores and gradient", 1, 4 * Z * K, stored, 2 * shared + 8 * T * (K + 2)),
        ("mixing of the tasks", 1, 0, 0, 8 * T * K),
        ("tasks' quadratics", 1, 2 * Z * K + 2 * size.rows * K**2, stored, 16 * T),
        ("task step, in two rounds", 1, 2 * T * (K**3 + K**4), 32 * T * K**2, 8 * T * K * 8),
    ]


def predicted(size: Size, cluster: Cluster, adds: float) -> None:
    """Seconds of a sweep by step."""
    K, T, P = size.width, size.tasks, size.features
    every = cluster.machines * cluster.cores
    tree = reduction(cluster, 8 * P * K, adds)
    print("| step | a sweep | work of the cluster | client | sums | all |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = 0.0
    for name, often, operations, stored, sent in steps(size, cluster):
        rate = cluster.flops * (0.3 if size.sparse else 1.0)
        work = max(operations / (every * rate), stored / (every * cluster.memory))
        client = sent / cluster.network
        sums = tree if "product" in name or "gradient" in name else 0.0
        seconds = often * (work + client + sums)
        total += seconds
        parts = " | ".join(f"{often * value:.2f} s" for value in (work, client, sums))
        print(f"| {name} | {often} | {parts} | {seconds:.1f} s |")
    print(f"| **a sweep** | | | | | **{total:.0f} s** |\n")
    own = (
        size.cells * (12 if size.sparse else 8) / cluster.machines + 8 * T * K**2 / cluster.machines
    )
    factors = 8 * (P + T) * K * 12
    print(
        f"A machine holds {own / 2**30:.0f} GiB of rows and tasks' quadratics, the client "
        f"{factors / 2**30:.0f} GiB of factors and what is made of them.\n"
    )


def reduction(cluster: Cluster, size: float, adds: float, *, seed: int = 0) -> float:
    """Seconds until the sum of one array from every partition has reached the client.

    Events: a value is ready on its machine; a task of the tree starts where most of its values
    are, fetches the others over the network card of that machine one after the other, and adds.
    Machines finish at times that differ by up to a fifth of a second.
    """
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(cluster.machines), cluster.partitions)
    ready = rng.uniform(0.0, 0.2, cluster.machines)[home]
    card = np.zeros(cluster.machines)
    values = list(zip(home.tolist(), ready.tolist(), strict=True))
    while len(values) > BRANCHES:
        groups = [values[n : n + BRANCHES] for n in range(0, len(values), BRANCHES)]
        values = [_add(group, card, cluster, size, adds) for group in groups]
    at, when = _add(values, card, cluster, size, adds)
    return max(when, card[at]) + size / cluster.network + cluster.latency


def _add(
    group: list[tuple[int, float]], card: np.ndarray, cluster: Cluster, size: float, adds: float
) -> tuple[int, float]:
    machines = [machine for machine, _ in group]
    at = max(set(machines), key=machines.count)
    events = [(when, machine) for machine, when in group]
    heapq.heapify(events)
    now = 0.0
    while events:
        when, machine = heapq.heappop(events)
        if machine != at:
            start = max(when, card[at], card[machine])
            card[at] = card[machine] = start + size / cluster.network
            when = card[at] + cluster.latency
        now = max(now, when) + size / adds
    return at, now + cluster.task_overhead


if __name__ == "__main__":
    flops, memory, adds = measured()
    print("# What a fit on a cluster costs\n")
    print("Written by `python benchmarks/bench_cost_model.py`.\n")
    print(
        f"One core: {flops / 1e9:.0f} GFLOP/s in thin products, {memory / 1e9:.1f} GB/s in a pass, "
        f"sums of arrays at {adds / 1e9:.1f} GB/s (measured). Network: 10 Gbit/s a machine, 2 ms "
        "(given). Machines of 16 cores, 10 partitions each.\n"
    )
    cluster = Cluster(100, 16, flops, memory)
    print("## 1e9 rows of 100 cells, 1e6 features, 1e7 tasks, K = 10, on 100 machines\n")
    predicted(Size(1e9, 1e11, 1e6, 1e7, 10, sparse=True), cluster, adds)
    print("## 1e8 rows, 100 features (dense), 1e5 tasks, K = 10, on 10 machines\n")
    predicted(Size(1e8, 1e10, 100, 1e5, 10, sparse=False), Cluster(10, 16, flops, memory), adds)
    print("## The reduction, simulated\n")
    print("A matrix of P × K = 1e6 × 10 doubles (80 MB) from each of 10 partitions a machine.\n")
    print("| machines | seconds | of these on the wire at least |")
    print("| --- | --- | --- |")
    for machines in (1, 10, 100, 1000):
        found = reduction(Cluster(machines, 16, flops, memory), 8e7, adds)
        print(f"| {machines} | {found:.2f} | {8e7 / 1.25e9:.2f} |")
