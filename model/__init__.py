"""babelserve's network, its training and its evaluation in PyTorch; `model.search` is the oracle of parity tests."""
