from server.decoding.result import Result, Timings


def test_the_longest_of_timings_is_taken_for_each_by_itself() -> None:
    slow_queue = Timings(queue_seconds=3.0, encode_seconds=0.1, decode_seconds=0.2)
    slow_network = Timings(queue_seconds=0.5, encode_seconds=0.4, decode_seconds=2.0)

    longest = Timings.longest(iter([slow_queue, slow_network]))

    assert longest == Timings(queue_seconds=3.0, encode_seconds=0.4, decode_seconds=2.0)


def test_of_no_sentence_the_longest_is_no_time() -> None:
    assert Timings.longest([]) == Timings(queue_seconds=0.0, encode_seconds=0.0, decode_seconds=0.0)


def test_a_result_took_no_time_unless_it_says_so() -> None:
    assert Result(()).timings == Timings.longest([])
