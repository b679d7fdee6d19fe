"""A client that says what no honest one does: HTTP/2 connections driven frame by frame, with h2 and its own frames."""

import contextlib
import select
import socket
import time
from collections.abc import Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from hpack import Encoder
from hyperframe.frame import ContinuationFrame, HeadersFrame, RstStreamFrame

TRANSLATE = "/babelserve.v1.TranslationService/Translate"
TRANSLATE_STREAM = "/babelserve.v1.TranslationService/TranslateStream"
MESSAGE_PREFIX_BYTES = 5
_CANCEL = 8
_NUMBER_START, _NUMBER_END = 5, 9  # of the stream, in a frame
_CHUNK_BYTES = 1 << 18
_CONNECT_SECONDS = 5.0


def request_headers(*more: tuple[str, str], path: str = TRANSLATE) -> list[tuple[str, str]]:
    """Returns what opens a gRPC call."""
    plain = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    return [*plain, ("te", "trailers"), ("content-type", "application/grpc"), *more]


def prefixed(message: bytes, *, is_compressed: bool = False, length: int | None = None) -> bytes:
    """Returns a message as gRPC frames it; `length` is what it claims, its own unless given."""
    claimed = len(message) if length is None else length
    return bytes([is_compressed]) + claimed.to_bytes(4, "big") + message


class Peer:
    """One connection. Its methods raise OSError once the server has closed it.

    Args:
        address: of the server.
        source: address to come from; None for the system's choice.

    Attributes:
        resets: streams that the server reset.
        ended: numbers of the streams that the server has ended, by a reset or else.
        is_closed: whether the server ended the connection.
    """

    def __init__(self, address: str, source: str | None = None) -> None:
        host, _, port = address.rpartition(":")
        own = (source, 0) if source else None
        self._socket = socket.create_connection((host, int(port)), _CONNECT_SECONDS, own)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._http2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._encoder = Encoder()
        self._next_stream = 1
        self.resets = 0
        self.ended: set[int] = set()
        self.is_closed = False
        self._http2.initiate_connection()
        self.pump(0.2)

    def open(self, headers: Sequence[tuple[str, str]]) -> int:
        """Opens a stream by the rules and returns its number."""
        stream: int = self._http2.get_next_available_stream_id()
        self._http2.send_headers(stream, headers)
        return stream

    def feed(self, stream: int, data: memoryview) -> int:
        """Sends as much as the server's windows allow; returns how much."""
        with contextlib.suppress(ProtocolError):  # the server has reset the stream
            window: int = self._http2.local_flow_control_window(stream)
            size: int = min(len(data), window, self._http2.max_outbound_frame_size)
            if size > 0:
                self._http2.send_data(stream, bytes(data[:size]))
                return size
        return 0

    def pump(self, seconds: float) -> None:
        """Sends what is due and takes what has come, waiting for at most so long."""
        self.send(self._http2.data_to_send())
        if self.is_closed or not self._poll(select.POLLIN, seconds):
            return
        self._receive()
        self.send(self._http2.data_to_send())

    def send(self, data: bytes) -> None:
        """Sends bytes as they are, taking what comes meanwhile."""
        rest = memoryview(data)
        while rest and not self.is_closed:
            ready = self._poll(select.POLLIN | select.POLLOUT, _CONNECT_SECONDS)
            if ready & ~select.POLLOUT:
                self._receive()
            if ready & select.POLLOUT and not self.is_closed:
                rest = rest[self._socket.send(rest[:_CHUNK_BYTES]) :]
            if not ready:
                raise TimeoutError("the server takes no more")

    def _poll(self, events: int, seconds: float) -> int:
        """Returns which events have come, errors and the end among them; `select` knows no more than 1,024 files."""
        poll = select.poll()
        poll.register(self._socket, events)
        return sum(event for _, event in poll.poll(1000 * seconds))

    def rapid_resets(self, count: int) -> bytes:
        """Returns streams that are opened and cancelled at once, in frames of which h2 knows nothing."""
        parts = []
        first = self._headers_frame({"END_HEADERS"}).serialize()
        later = self._headers_frame({"END_HEADERS"}).serialize()  # all of it is in the table by then
        reset = RstStreamFrame(1, error_code=_CANCEL).serialize()
        for index in range(count):
            number = self._next_stream.to_bytes(4, "big")
            for frame in (later if index else first, reset):
                parts += [frame[:_NUMBER_START], number, frame[_NUMBER_END:]]
            self._next_stream += 2
        return b"".join(parts)

    def endless_headers(self, count: int) -> bytes:
        """Returns the start of a stream whose headers go on in so many CONTINUATION frames, and do not end."""
        first = self._headers_frame(set())
        block = self._encoder.encode([("x-padding", "x" * 4096)], huffman=False)
        again: bytes = ContinuationFrame(first.stream_id, data=block).serialize()
        self._next_stream += 2
        start: bytes = first.serialize()
        return start + again * count

    def close(self) -> None:
        """Leaves without a word."""
        self.is_closed = True
        self._socket.close()

    def _headers_frame(self, flags: set[str]) -> HeadersFrame:
        return HeadersFrame(self._next_stream, self._encoder.encode(request_headers()), flags=sorted(flags))

    def _receive(self) -> None:
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            events = self._http2.receive_data(data)
        except ProtocolError:  # an answer to frames that h2 has not sent
            return
        for event in events:
            self.resets += isinstance(event, StreamReset)
            if isinstance(event, StreamEnded | StreamReset) and event.stream_id is not None:
                self.ended.add(event.stream_id)
            if isinstance(event, ConnectionTerminated):
                self.close()


def linger(peers: Sequence[Peer], seconds: float) -> None:
    """Keeps connections open for so long, answering pings."""
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for peer in peers:
            peer.pump(0.0)
        time.sleep(min(0.02, end - now))
