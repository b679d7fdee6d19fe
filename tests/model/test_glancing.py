import itertools

import torch

from model.ctc_search import collapse
from model.glancing import best_alignments, glance
from tests.model.test_one_pass import SOURCES, build

TARGETS = torch.tensor([[9, 9, 30], [12, 0, 0]])
NUM_TARGETS = torch.tensor([3, 1])


def test_an_alignment_is_the_best_path_of_the_target() -> None:
    for seed in range(300):
        generator = torch.Generator().manual_seed(seed)
        num_targets = torch.tensor([1 + seed % 3, 2])
        targets = torch.randint(1, 3, (2, 3), generator=generator)
        num_positions = torch.tensor([6, 5])
        scores = torch.randn(2, 6, 3, generator=generator)  # of the blank, 0, and of the tokens 1 and 2
        columns = torch.nn.functional.pad(targets, (1, 0))
        by_column = scores.gather(2, columns[:, None].expand(-1, 6, -1))

        found = columns.gather(1, best_alignments(by_column, num_positions, targets, num_targets))

        for i, count in enumerate(num_positions.tolist()):
            wanted = targets[i, : num_targets[i]].tolist()
            paths = [path for path in itertools.product(range(3), repeat=count) if collapse(path, 0) == wanted]
            totals = [sum(float(scores[i, t, label]) for t, label in enumerate(path)) for path in paths]
            assert paths[totals.index(max(totals))] == tuple(found[i, :count].tolist())


def test_a_target_that_has_no_path_does_no_harm() -> None:
    targets = torch.tensor([[1, 1, 1]])

    found = best_alignments(torch.randn(1, 4, 4), torch.tensor([4]), targets, torch.tensor([3]))

    assert found.shape == (1, 4)
    assert ((found >= 0) & (found <= 3)).all()


def test_what_is_shown_are_embeddings_of_the_targets_path() -> None:
    model = build().train()
    upsampled, visible = model.upsample(SOURCES)
    torch.manual_seed(1)

    shown = glance(model, upsampled, visible, TARGETS, NUM_TARGETS, 0.9)

    changed = (shown != upsampled).any(dim=-1)
    assert 0 < changed.sum() < visible.sum()
    allowed = model.embedding.tokens.weight[[2, 9, 12, 30]] * model.embedding.scale  # the blank is 2
    for row, position in changed.nonzero().tolist():
        assert any(torch.equal(shown[row, position], each) for each in allowed)
    assert torch.equal(glance(model, upsampled, visible, TARGETS, NUM_TARGETS, 0.0), upsampled)


def test_a_network_that_writes_the_target_is_shown_nothing() -> None:
    model = build(output_bias=True).train()
    upsampled, visible = model.upsample(SOURCES)
    assert model.output_bias is not None
    with torch.no_grad():
        model.output_bias[12] = 1e4  # writes 12 at each position, which is the best path of the target 12
        shown = glance(model, upsampled, visible, torch.full((2, 1), 12), torch.tensor([1, 1]), 0.99)

    assert torch.equal(shown, upsampled)
