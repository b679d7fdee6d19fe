import threading

from server.runtime.device_turns import device_turn, taking_turns


def test_a_call_waits_until_whoever_captures_is_done() -> None:
    order: list[str] = []
    has_begun = threading.Event()

    @taking_turns
    def call() -> None:
        order.append("call")

    def other_thread() -> None:
        has_begun.set()
        call()

    thread = threading.Thread(target=other_thread)
    with device_turn:
        thread.start()
        has_begun.wait()
        call()  # the same thread may, as often as it likes
        order.append("captured")
    thread.join()

    assert order == ["call", "captured", "call"]
