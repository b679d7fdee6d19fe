import pytest

from model.checkpoint import Checkpoint


@pytest.fixture
def tokenizer(tiny_checkpoint: Checkpoint) -> bytes:
    return tiny_checkpoint.tokenizer
