from tests.chaos.journal import OK, OVERLOAD_CODES, PARTIAL, Journal


def test_a_call_that_is_answered_in_time_is_no_fault() -> None:
    journal = Journal()

    journal.close(journal.open(0, due=1.0, timeout=2.0), OK, 2.5, is_right=True)

    assert journal.faults() == []
    assert journal.entries[0].latency == 1.5


def test_whatever_breaks_the_promise_is_a_fault() -> None:
    journal = Journal()
    journal.open(0, due=0.0)
    journal.close(twice := journal.open(1, due=0.0), OK, 1.0, is_right=True)
    journal.close(twice, "INTERNAL", 2.0)
    journal.close(journal.open(2, due=0.0, timeout=1.0), "UNAVAILABLE", 5.0)
    journal.close(journal.open(3, due=0.0), OK, 1.0, is_right=False)
    journal.close(journal.open(4, due=0.0), "UNKNOWN", 1.0)

    assert journal.faults() == [
        "1 calls without an outcome",
        "1 calls with two outcomes",
        "1 calls ended too late",
        "1 calls with another call's answer, or a wrong one",
        "1 calls ended UNKNOWN",
    ]


def test_an_answer_to_some_texts_is_a_fault_unless_there_was_too_much_to_do() -> None:
    journal = Journal()

    journal.close(journal.open(0, due=0.0), PARTIAL, 1.0, is_right=True)

    assert journal.faults() == [f"1 calls ended {PARTIAL}"]
    assert journal.faults(OVERLOAD_CODES) == []


def test_only_a_right_answer_in_time_counts_as_goodput() -> None:
    journal = Journal()
    for outcome, ended, is_right in ((OK, 1.0, True), (OK, 3.0, True), (OK, 1.0, False), ("INTERNAL", 1.0, None)):
        journal.close(journal.open(0, due=0.0, timeout=2.0), outcome, ended, is_right=is_right)

    assert [entry.is_good for entry in journal.entries] == [True, False, False, False]
