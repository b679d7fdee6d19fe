"""The table of states of manifests that have none: until revision 10 it followed from `dimensions.decoder_mixer`."""

import dataclasses
from typing import Any

from server.bundle.manifest import Manifest
from server.bundle.states import attention_states, ssru_states

FIRST_WITH_STATES = 11  # revision
_ATTENTION, _SSRU = _MIXERS = ("attention", "ssru")


def take_mixer(document: dict[str, Any], faults: list[str]) -> str:
    """Takes the name of the decoder's mixer out of an old manifest, as read from JSON, and gives it an empty table.

    A mixer that is not known is added to `faults`.
    """
    document["states"] = []
    dimensions = document.get("dimensions")
    mixer = dimensions.pop("decoder_mixer", _ATTENTION) if isinstance(dimensions, dict) else _ATTENTION
    if mixer not in _MIXERS:
        faults.append(f"dimensions.decoder_mixer must be one of {', '.join(_MIXERS)}, not {mixer!s:.20}")
    return str(mixer)


def with_states(manifest: Manifest, mixer: str) -> Manifest:
    """Returns an old manifest, whose sizes have been checked, with the table that its mixer stands for."""
    sizes = manifest.dimensions
    if mixer == _SSRU:
        states = ssru_states(sizes.decoder_layers, sizes.d_model)
    else:
        states = attention_states(sizes.decoder_layers, sizes.num_heads, sizes.head_dim)
    return dataclasses.replace(manifest, states=states)
