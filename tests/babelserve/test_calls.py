from babelserve.calls import Connection


def test_a_call_takes_the_clients_deadline_and_a_bulk_call_its_own() -> None:
    connection = Connection("localhost:1", None, "key", 7.0)

    assert connection.terms(None) == {"timeout": 7.0, "metadata": (("authorization", "Bearer key"),)}
    assert connection.terms(2.0)["timeout"] == 2.0
    assert connection.bulk_terms(None)["timeout"] is None
