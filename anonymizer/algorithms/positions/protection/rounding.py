"""Published times, made coarser than the ticks they are the times of."""


def round_time(ts: float, step_s: float) -> float:
    """Return a time rounded down to a multiple of a step.

    Parameters
    ----------
    ts
        Unix seconds.
    step_s
        Seconds; 0 leaves the time as it is.

    Raises
    ------
    ValueError
        If the step is negative.

    Notes
    -----
    Exact for steps of whole seconds. Where the step exceeds the tick, several ticks carry one
    time: a pseudonym can then come twice at one time with two regions, so a consumer must not
    take (pseudonym, time) for a key, sort by time alone, or divide distances by differences of
    times. It keeps exact times out of what is stored; who listens live has the arrival times.
    """
    if step_s < 0:
        raise ValueError("a step of time must not be negative")
    return ts - ts % step_s if step_s else ts
