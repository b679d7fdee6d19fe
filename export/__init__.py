"""From a checkpoint of `model` to a bundle that `server` serves: graphs, precisions, proof."""
