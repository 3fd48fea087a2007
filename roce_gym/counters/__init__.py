"""Counters of every port, under the names that switches and NICs give them.

Switches: SONiC's COUNTERS_DB, with names of SAI statistics. NICs: `ethtool -S` of mlx5 and RDMA
hardware counters. What stands behind a colon is the queue (priority), as SONiC writes it.
"""

from roce_gym.counters.columns import Column, columns_of
from roce_gym.counters.ports import Port, ports_of
from roce_gym.counters.sampler import Sample, Sampler

__all__ = ["Column", "Port", "Sample", "Sampler", "columns_of", "ports_of"]
