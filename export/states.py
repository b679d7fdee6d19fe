"""The table of states of a network: what its decoder step keeps of each row."""

from model.config import TransformerConfig
from server.bundle.states import State, attention_states, lstm_states, retention_states, ssru_states


def states_of(config: TransformerConfig) -> tuple[State, ...]:
    """Returns the table that the manifest has, and by which the graphs are drawn."""
    if config.family == "one_pass":
        return ()
    if config.family == "recurrent":
        return lstm_states(config.decoder_layers, config.head_dim)
    if config.decoder_mixer == "ssru":
        return ssru_states(config.decoder_layers, config.d_model)
    if config.decoder_mixer == "retention":
        return retention_states(config.decoder_layers, config.num_heads, config.head_dim)
    return attention_states(config.decoder_layers, config.num_heads, config.head_dim, config.self_window)
