"""Reads answers, so that none takes gigabytes.

gRPC limits the length of an answer, and not its size in memory: a message without fields takes two bytes of an answer,
and hundreds of bytes in memory. So a long answer is looked through before it is unpacked.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from babelserve.errors import ServerFailed

# An answer that may unpack to 200 MB at worst is not looked through, which would take longer than to unpack it.
_SHORT_BYTES = 2**20
# By an estimate. A token counts 196, and takes 20 bytes of an answer: half would refuse what a server may send. With
# twice as much an answer could take 2 GB.
_MOST_UNPACKED_BYTES = 768 * 2**20
_MESSAGE_BYTES, _FIELD_BYTES, _TEXT_BYTES = 100, 24, 64  # about: as protobuf and as ours, of each
_MOST_VARINT_BITS = 70
_VARINT, _LENGTH = 0, 2  # wire types: https://protobuf.dev/programming-guides/encoding/
_WIDTHS = (0, 8, 0, 0, 0, 4)  # of values of other wire types; of a group that begins or ends, 0

_Fields = dict[int, tuple[int, "_Fields"]]
_UNKNOWN: tuple[int, _Fields] = (0, {})


class BoundedChannel:
    """A channel for a generated stub: its calls give a message, or a `ServerFailed` for what cannot be one.

    gRPC would write a traceback if the reading of an answer raised anything. `answer` raises it.

    Args:
        channel: of gRPC, of either kind.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        make = getattr(self._channel, kind)

        def made(method: str, *, response_deserializer: Callable[[bytes], Message], **rest: Any) -> Any:
            kind = type(response_deserializer(b""))
            return make(method, response_deserializer=lambda data: _read(kind, data), **rest)

        return made


def answer(response: Any) -> Any:
    """Returns what a call of a `BoundedChannel` has given. Raises ServerFailed if that is no answer."""
    if isinstance(response, ServerFailed):
        raise response
    return response


def check_count(num_answers: int, num_texts: int) -> None:
    """Raises ServerFailed if a server has not answered as many texts as it was sent."""
    if num_answers != num_texts:
        raise ServerFailed(f"the server answered {num_texts} texts with {num_answers} answers")


def _read(kind: type[Message], data: bytes) -> Message | ServerFailed:
    try:
        if len(data) > _SHORT_BYTES:
            _Unpacked(data).add(_repeated(kind.DESCRIPTOR), 0, len(data))
        return kind.FromString(data)
    except (DecodeError, IndexError):
        return ServerFailed(f"the answer has {len(data)} bytes that are no {kind.DESCRIPTOR.name}")
    except ServerFailed as error:
        return error


class _Unpacked:
    """Estimates how much memory a message takes.

    Args:
        data: of the message.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._num_bytes = len(data)

    def add(self, fields: _Fields, position: int, end: int) -> None:
        """Adds what stands in a range, and in the messages in it.

        Raises:
            ServerFailed: it takes too much.
            IndexError: it is no message.
        """
        while position < end:
            tag, position = self._number(position)
            if tag & 7 != _LENGTH:
                position = self._behind(tag & 7, position)
                continue
            length, position = self._number(position)
            num_bytes, inner = fields.get(tag >> 3, _UNKNOWN)
            self._num_bytes += num_bytes
            if inner:
                self.add(inner, position, position + length)
            position += length
        if self._num_bytes > _MOST_UNPACKED_BYTES:
            most = f"{_MOST_UNPACKED_BYTES >> 20} MiB"
            raise ServerFailed(f"the answer has {len(self._data)} bytes, and would take more than {most} of memory")

    def _behind(self, wire_type: int, position: int) -> int:
        """Returns where a value ends that has no length of its own."""
        if wire_type == _VARINT:
            return self._number(position)[1]
        return position + _WIDTHS[wire_type]

    def _number(self, position: int) -> tuple[int, int]:
        """Reads a number; returns it and the position behind it. Raises IndexError if it has no end."""
        value = byte = self._data[position]
        shift = 0
        while byte >= 0x80:
            position, shift = position + 1, shift + 7
            byte = self._data[position]
            if shift >= _MOST_VARINT_BITS:
                raise IndexError("the number has no end")
            value += (byte - 1) << shift  # without the bit that says that more comes
        return value, position + 1


@cache
def _repeated(kind: Descriptor) -> _Fields:
    """Returns by number the fields that an answer may have many of: the memory of each one, and those in it."""
    found: _Fields = {}
    for field in kind.fields:
        if (inner := field.message_type) is not None:
            found[field.number] = _MESSAGE_BYTES + _FIELD_BYTES * len(inner.fields), _repeated(inner)
        elif field.is_repeated:
            found[field.number] = _TEXT_BYTES, {}
    return found
