"""A sender of one's own, for `cc: user`; what a function gets is said in `roce_gym.user_sender`.

    tenants:
      - name: training
        cc: user
        user: { file: my_sender.py, function: delay_and_cnp, params: [25.0, 0.8, 0.001] }
        ...

The rate falls with the round-trip time above a target, at most once a round trip, and by a quarter
at a CNP. It rises by a timer: a queue pair whose rate is low recovers even if nothing comes back.
"""

from numba import njit

from roce_gym.user_sender import ACK, CNP, TIMER

PS_PER_US = 1_000_000
STEP_PS = 10 * PS_PER_US

# state
CUT_AT, BUSY = 0, 1
# params
TARGET_US, GAIN, STEP = 0, 1, 2


@njit
def delay_and_cnp(event, state, params):
    """Rate as a share of line rate; params: target in us, gain, increase each 10 us."""
    rate = event["rate"]
    if state[BUSY] == 0.0:  # the first event of a queue pair starts its timer
        state[BUSY] = 1.0
        event["timer_ps"] = STEP_PS
    if event["kind"] == TIMER:
        event["timer_ps"] = STEP_PS
        return rate + params[STEP]
    if event["kind"] == CNP:
        return 0.75 * rate
    if event["kind"] == ACK:
        target_ps = params[TARGET_US] * PS_PER_US
        rtt_ps = float(event["rtt_ps"])
        if rtt_ps > target_ps and event["now_ps"] - rtt_ps >= state[CUT_AT]:
            state[CUT_AT] = event["now_ps"]
            return rate * (1.0 - params[GAIN] * (rtt_ps - target_ps) / rtt_ps)
    return rate
