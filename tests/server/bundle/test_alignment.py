from server.bundle.alignment import Alignment, Head


def test_an_aligner_reads_caches_up_to_the_last_layer_with_a_head() -> None:
    heads = Head(0, 2, is_shifted=True), Head(3, 1, is_shifted=False), Head(1, 0, is_shifted=False)

    assert Alignment(heads=heads, error_rate=0.1, num_sentences=200).last_layer == 3
