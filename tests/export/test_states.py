import dataclasses

from export.states import states_of
from model.config import TransformerConfig
from server.bundle.states import attention_states, lstm_states, retention_states, ssru_states

CONFIG = TransformerConfig(vocab_size=50, d_model=48, num_heads=2, decoder_layers=3, head_width=8)


def test_the_table_follows_from_the_network() -> None:
    assert states_of(CONFIG) == attention_states(3, 2, 8)
    assert states_of(dataclasses.replace(CONFIG, self_window=5)) == attention_states(3, 2, 8, window=5)
    assert states_of(dataclasses.replace(CONFIG, decoder_mixer="ssru")) == ssru_states(3, 48)
    assert states_of(dataclasses.replace(CONFIG, decoder_mixer="retention")) == retention_states(3, 2, 8)
    recurrent = dataclasses.replace(CONFIG, family="recurrent", num_heads=1, head_width=16)
    assert states_of(recurrent) == lstm_states(3, 16)
    assert states_of(dataclasses.replace(CONFIG, family="one_pass")) == ()
