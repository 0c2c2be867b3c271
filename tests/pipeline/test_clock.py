"""The steady clock beside a wall clock that is put forward and back."""

from anonymizer.pipeline.clock import SteadyClock


class Clocks:
    def __init__(self) -> None:
        self.monotonic_s = 5.0
        self.put_s = 0.0
        self.reading_takes_s = 0.0
        self.jumps: list[float] = []
        self.steady = SteadyClock(
            wall=self._wall, monotonic=lambda: self.monotonic_s, on_jump=self.jumps.append
        )

    def _wall(self) -> float:
        self.monotonic_s += self.reading_takes_s
        return 1_800_000_000.0 + self.monotonic_s + self.put_s


def test_it_runs_evenly_whatever_is_done_to_the_wall_clock() -> None:
    clocks = Clocks()
    times: list[float] = []
    for put_s in (0.0, 0.0, 3600.0, 3600.0, 0.0, -90.0):
        clocks.monotonic_s += 1.0
        clocks.put_s = put_s
        times.append(clocks.steady.now())
        assert clocks.steady.wall_ahead_s() == put_s
    assert [b - a for a, b in zip(times[1:], times, strict=False)] == [-1.0] * 5
    assert clocks.jumps == [3600.0, -3600.0, -90.0]


def test_a_reading_that_takes_long_is_not_a_jump() -> None:
    clocks = Clocks()
    clocks.reading_takes_s = 2.0
    assert clocks.steady.wall_ahead_s() == 0
    clocks.put_s = 3600.0
    assert abs(clocks.steady.wall_ahead_s() - 3600) <= 1
    assert len(clocks.jumps) == 1
