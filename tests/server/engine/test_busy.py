from server.engine.busy import BusyEngines


def test_an_engine_is_the_only_one_while_no_other_runs_anything() -> None:
    busy, one, other = BusyEngines(), object(), object()
    seen = [busy.is_only(one)]
    for engine, is_busy in ((one, True), (other, True), (one, False), (other, False)):
        busy.note(engine, is_busy=is_busy)
        seen.append(busy.is_only(one))

    assert seen == [True, True, False, False, True]
