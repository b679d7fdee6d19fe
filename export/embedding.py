"""The beginning of a graph: the embedding of a side's tokens and positions, for `export.graphs`."""

from export.graph import Graph
from model.network import Network
from model.transformer import LayeredNetwork, Transformer
from server.bundle.graphs import EMBEDDING

_SOURCE, _TARGET = "source_embedding", "target_embedding"
TABLES = (EMBEDDING, _SOURCE, _TARGET)  # names of the token embeddings that a graph may have


def embed_source(graph: Graph, model: LayeredNetwork, ids: str, length: str) -> str:
    """Adds what the encoder begins with, from ids [B, S] to [B, S, M]; `length` is S, [1]."""
    table = graph.weight("positions", model.source_positions)
    positions = graph.node("Slice", [table, graph.constant([0]), length, graph.constant([0])])
    embedded = graph.node("Add", [source_tokens(graph, model, ids), positions], "encoder.input")
    return normalise_embedded(graph, model, "encoder", embedded)


def embed_target(graph: Graph, model: Transformer, ids: str, past_lengths: str) -> str:
    """Adds what the decoder begins with, from ids [B] behind so many tokens [B] to [B, M]."""
    table = graph.weight("positions", model.target_positions)
    position = graph.node("Gather", [table, past_lengths])
    embedded = graph.node("Add", [target_tokens(graph, model, ids), position], "decoder.input")
    return normalise_embedded(graph, model, "decoder", embedded)


def source_tokens(graph: Graph, model: Network, ids: str) -> str:
    """Adds the embedding of source tokens without positions, from ids of any shape to one more axis M."""
    return _embed(graph, model, _SOURCE if model.source_embedding else _target_name(model), ids)


def target_tokens(graph: Graph, model: Network, ids: str) -> str:
    """Adds the embedding of target tokens likewise."""
    return _embed(graph, model, _target_name(model), ids)


def normalise_embedded(graph: Graph, model: LayeredNetwork, side: str, x: str) -> str:
    """Adds the norm behind the sum of embedding and position of "encoder" or "decoder", if the model has one."""
    if not model.config.embedding_norm:
        return x
    norm = model.encoder_embedding_norm if side == "encoder" else model.decoder_embedding_norm
    return graph.layer_norm(f"{side}.embedding_norm", x, norm)


def _target_name(model: Network) -> str:
    return EMBEDDING if model.config.tied_output else _TARGET


def _embed(graph: Graph, model: Network, name: str, ids: str) -> str:
    weight = model.source_tokens if name == _SOURCE else model.embedding.tokens.weight
    tokens = graph.node("Gather", [graph.weight(name, weight), ids], "embedded")
    if not model.config.scale_embedding:
        return tokens
    return graph.node("Mul", [tokens, graph.constant(model.embedding.scale, graph.dtype)])
