"""How much may still arrive after a switch has decided to pause: headroom of a port and class.

Two rules: what this simulator needs, exactly, and what SONiC configures on NVIDIA switches, which
also covers what the simulator leaves out (reaction times of real ports, buffer cells that are not
full, larger frames of other classes).
"""

from __future__ import annotations

from fractions import Fraction

from roce_gym.errors import ConfigError
from roce_gym.units import BPS_PER_GBPS, KIB, PS_PER_S

PAUSE_QUANTUM_BYTES = 64
"""512 bit times (IEEE 802.3 annex 31B)."""

RESPONSE_QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}
"""Gb/s to the quanta for which the peer may go on sending (IEEE 802.3, 31B.3.7; as in SONiC)."""

MAC_PHY_BYTES = Fraction(8, 10) * KIB
SIGNAL_M_PER_S = 198_000_000
TILE_BYTES_PER_GBPS = 15
"""Buffer in front of the packet buffer, Spectrum-4 and later: 120 ns at line rate."""

PORT_MTU_BYTES = 9216
"""Frame that may be under way in either direction; the MTU that SONiC gives its ports."""

SMALL_PACKET_BYTES = 64


def simulator_headroom_bytes(
    rate_bps: int, delay_ps: int, largest_frame_bytes: int, pause_bytes: int
) -> int:
    """What can arrive in this simulator after a pause was decided.

    That is a frame being sent on the way back, the pause frame, both propagation delays, the frame
    the sender finishes and the frame that passed the threshold (IEEE 802.1Qbb annex O).

    Args:
        rate_bps, delay_ps: of the cable, one way.
        largest_frame_bytes, pause_bytes: on the wire, with preamble and gap.
    """
    in_flight = -(-2 * rate_bps * delay_ps // (8 * PS_PER_S))
    return in_flight + 3 * largest_frame_bytes + pause_bytes


def sonic_headroom_bytes(
    rate_bps: int,
    cable_m: float,
    lossless_mtu_bytes: int,
    *,
    cell_bytes: int,
    has_tiles: bool,
    port_mtu_bytes: int = PORT_MTU_BYTES,
    small_packet_share: float = 1.0,
) -> int:
    """`xoff` of a lossless profile as SONiC computes it for NVIDIA Spectrum switches.

    Source: sonic-swss, cfgmgr/buffer_headroom_mellanox.lua. With its default arguments and an MTU
    of 1,024 it gives every row of the stock table of the SN5600 (Spectrum-4).

    Args:
        rate_bps: of the port; one of RESPONSE_QUANTA.
        cable_m: length.
        lossless_mtu_bytes: largest packet of the lossless class.
        cell_bytes, has_tiles: see `asics.Asic`.
        port_mtu_bytes: largest packet of any class.
        small_packet_share: of the bytes in flight that come as packets of 64 bytes, 0 … 1; each
            fills whole cells. 1 is the worst case.

    Raises:
        ConfigError: nothing is known about ports of this rate.
    """
    rate_gbps = Fraction(rate_bps, BPS_PER_GBPS)
    if rate_gbps not in RESPONSE_QUANTA:
        known = ", ".join(map(str, RESPONSE_QUANTA))
        raise ConfigError(
            f"headroom_bytes: the SONiC rule knows no ports of {float(rate_gbps):g} Gb/s; "
            f"allowed: {known} Gb/s"
        )
    peer = RESPONSE_QUANTA[int(rate_gbps)] * PAUSE_QUANTUM_BYTES
    cable = 2 * Fraction(cable_m) * rate_bps / SIGNAL_M_PER_S / 8
    tiles = rate_gbps * TILE_BYTES_PER_GBPS if has_tiles else 0
    delayed = port_mtu_bytes + cable + MAC_PHY_BYTES + peer + tiles
    cells_per_small = -(-cell_bytes // SMALL_PACKET_BYTES)
    share = Fraction(small_packet_share)
    exact = lossless_mtu_bytes + delayed * (1 - share + share * cells_per_small)
    return int(-(-exact // KIB)) * KIB
