"""From a checkpoint of `model` to a bundle that babelserve's `server` serves: graphs, precisions, proof."""
