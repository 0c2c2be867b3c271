"""A connection on which nothing arrives is reported once, with the likely cause."""

from anonymizer.app.gateway.input_troubles import SilentConnection


def reported(*looks: tuple[float, int, bool], after_s: float = 60.0) -> list[float]:
    """Return when a silence was reported, of looks at time, messages and connection."""
    watch = SilentConnection(after_s=after_s)
    return [at_s for at_s, n, up in looks if watch.see(n, connected=up, at_s=at_s)]


def test_a_connection_without_a_message_is_reported_once() -> None:
    assert reported((5, 0, True), (64, 0, True), (65, 0, True), (999, 0, True)) == [65]


def test_counts_of_an_earlier_run_are_no_messages() -> None:
    assert reported((0, 10**6, True), (60, 10**6, True)) == [60]


def test_after_one_message_a_silence_is_that_of_the_devices() -> None:
    assert reported((0, 0, True), (59, 1, True), (61, 1, True), (9999, 1, True)) == []


def test_what_arrived_before_the_first_look_at_a_connection_is_a_message() -> None:
    """One burst, and then nothing: the devices are silent, and the connection is not."""
    assert reported((0, 0, False), (5, 20, True), (70, 20, True), (999, 20, True)) == []
    assert reported((0, 10**6, False), (5, 10**6, True), (70, 10**6, True)) == [70]


def test_time_without_a_connection_does_not_count() -> None:
    assert reported((0, 0, False), (100, 0, False), (101, 0, True), (160, 0, True)) == []


def test_a_new_connection_is_watched_anew() -> None:
    looks = [(0, 0, True), (60, 0, True), (61, 0, False), (62, 0, True), (122, 0, True)]
    assert reported(*looks) == [60, 122]


def test_zero_seconds_switch_it_off() -> None:
    assert reported((0, 0, True), (9, 0, False), (10, 0, True), (99, 0, True), after_s=0) == []
