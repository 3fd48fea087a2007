"""Every array of the simulator's state, with shape, unit and meaning.

The whole state is one :class:`State`: a NamedTuple of flat, preallocated, C-contiguous arrays.
Records fetched one at a time are structured arrays of one cache line (64 bytes) or half of one.
Copying the arrays copies the simulation exactly.

Index names: `link` a directed link, `link ^ 1` its other direction; `c` a class, 0 internal for
PFC frames; `port = link * num_classes + c` a (link, class) pair; `node` hosts first, then switches.

Here: constants; records of the network, of buffers, of endpoints, of congestion control, of jobs;
parameters of the simulation; `state`, which names the array of each.
"""

from roce_gym.sim.types.buffers import *
from roce_gym.sim.types.constants import *
from roce_gym.sim.types.control import *
from roce_gym.sim.types.endpoints import *
from roce_gym.sim.types.jobs import *
from roce_gym.sim.types.network import *
from roce_gym.sim.types.simulation import *
from roce_gym.sim.types.state import *
