"""Senders that a scenario may name: rates as shares of line rate, whatever happens."""

from numba import njit


@njit
def a_half(event, state, params):
    return 0.5


@njit
def a_fifth(event, state, params):
    return 0.2


@njit
def delay_and_cnp(event, state, params):
    return 0.01
