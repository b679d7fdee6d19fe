"""What each attack sends, and for how long."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from babelserve.v1.translation_pb2 import TranslateRequest, TranslateStreamRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.chaos.attacks_peer import TRANSLATE, TRANSLATE_STREAM, Peer, linger, prefixed, request_headers
from tests.chaos.http2 import PING, SETTINGS, frame

MAX_MESSAGE_BYTES = 4 << 20
_SLOW_BYTES = 16  # of a slow sender, each time
_HALF_BYTES = 1 << 20
_MANY = 30  # times as many connections
_ELSEWHERE = "127.0.0.2"  # another address than honest callers have
_COPIED = TranslateRequest(contents=[" " * (1 << 19)], target_language_code="de")  # the answer has it twice
_LEGAL_SECONDS, _LEGAL_PAUSE_SECONDS = 60.0, 0.01  # of a call, and until it is made again


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where an attack goes, how broad it is and how long it lasts."""

    address: str
    connections: int
    seconds: float


def unfinished_messages(target: Target) -> None:
    """Messages of the greatest length, all but the last byte, on a hundred streams of each connection."""
    body = memoryview(prefixed(bytes(MAX_MESSAGE_BYTES - 1), length=MAX_MESSAGE_BYTES))
    _send_bodies(target, body, num_streams=100)


def slow_senders(target: Target) -> None:
    """Messages of a few bytes at a time, which never end, on a hundred streams of each connection."""
    body = memoryview(prefixed(bytes(MAX_MESSAGE_BYTES - 1), length=MAX_MESSAGE_BYTES))
    _send_bodies(target, body, num_streams=100, at_once=_SLOW_BYTES)


def half_messages(target: Target) -> None:
    """Halves of messages, one on each of thirty times as many connections; who is refused comes back by a new one."""
    body = memoryview(prefixed(bytes(_HALF_BYTES), length=2 * _HALF_BYTES))
    end = time.monotonic() + target.seconds
    sent: dict[tuple[Peer, int], int] = {}
    try:
        while time.monotonic() < end:
            for _ in range(_MANY * target.connections - len(sent)):
                peer = Peer(target.address)
                sent[peer, peer.open(request_headers())] = 0
            for (peer, stream), offset in list(sent.items()):
                if peer.resets or peer.is_closed:
                    peer.close()
                    del sent[peer, stream]
                else:
                    sent[peer, stream] += peer.feed(stream, body[offset:])
                    peer.pump(0.0)
    finally:
        for peer, _ in sent:
            peer.close()


def unread_answers(target: Target) -> None:
    """Calls whose answers of a MiB nobody reads, on thirty times as many connections; who is refused tries again."""
    _leave_unread(target, TRANSLATE, _COPIED.SerializeToString())


def unread_streams(target: Target) -> None:
    """The same by streams."""
    _leave_unread(target, TRANSLATE_STREAM, TranslateStreamRequest(request=_COPIED).SerializeToString())


def rapid_resets(target: Target) -> None:
    """80,000 streams in all that are opened and reset at once."""
    with _peers(target) as peers:
        floods = [(peer, peer.rapid_resets(80_000 // target.connections)) for peer in peers]
        for peer, frames in floods:
            peer.send(frames)
        linger(peers, target.seconds)


def continuation(target: Target) -> None:
    """Headers that go on in CONTINUATION frames for ever."""
    _repeat(target, lambda peer: peer.endless_headers(256))


def pings(target: Target) -> None:
    """Pings, as fast as they are taken."""
    _repeat(target, lambda peer: frame(PING, 0, 0, bytes(8)) * 1000)


def settings(target: Target) -> None:
    """Empty SETTINGS, each of which asks for an acknowledgement."""
    _repeat(target, lambda peer: frame(SETTINGS, 0, 0) * 1000)


def idle_connections(target: Target) -> None:
    """A hundred times as many connections that do nothing."""
    peers: list[Peer] = []
    end = time.monotonic() + target.seconds
    with contextlib.suppress(OSError):
        while len(peers) < 100 * target.connections:
            peers.append(Peer(target.address))
    linger(peers, end - time.monotonic())


def large_calls(target: Target) -> None:
    """Legal calls of the greatest length, their texts without an end."""
    request = TranslateRequest(contents=["word " * 400_000, "word " * 400_000], target_language_code="de")
    _call(target, request)


def compressed(target: Target) -> None:
    """Legal calls of a few KiB that gzip makes 2 MiB of."""
    request = TranslateRequest(contents=["\ufdfa" * 690_000], target_language_code="de")
    _call(target, request, grpc.Compression.Gzip)


ATTACKS: dict[str, Callable[[Target], None]] = {
    "unfinished-messages": unfinished_messages,
    "slow-senders": slow_senders,
    "half-messages": half_messages,
    "unread-answers": unread_answers,
    "unread-streams": unread_streams,
    "rapid-resets": rapid_resets,
    "continuation": continuation,
    "pings": pings,
    "settings": settings,
    "idle-connections": idle_connections,
    "large-calls": large_calls,
    "compressed": compressed,
}


@contextlib.contextmanager
def _peers(target: Target) -> Iterator[list[Peer]]:
    """The attacker's connections, closed at the end; any may be replaced."""
    peers = [Peer(target.address) for _ in range(target.connections)]
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


def _send_bodies(target: Target, body: memoryview, num_streams: int, at_once: int | None = None) -> None:
    """Sends a body on many streams, as fast as their windows open, or a few bytes at a time."""
    with _peers(target) as peers:
        end = time.monotonic() + target.seconds
        sent = {(peer, peer.open(request_headers())): 0 for peer in peers for _ in range(num_streams)}
        while time.monotonic() < end:
            for (peer, stream), offset in sent.items():
                if not peer.is_closed:
                    sent[peer, stream] += peer.feed(stream, body[offset : offset + (at_once or len(body))])
            linger(peers, 0.1 if at_once else 0.001)


def _leave_unread(target: Target, path: str, message: bytes) -> None:
    """Makes a call on each of many connections, whose windows it never opens again."""
    body = memoryview(prefixed(message))
    with contextlib.ExitStack() as stack:
        peers = [Peer(target.address, _ELSEWHERE) for _ in range(_MANY * target.connections)]
        for peer in peers:
            stack.callback(peer.close)
        sent = {peer: (peer.open(request_headers(path=path)), 0) for peer in peers}
        end = time.monotonic() + target.seconds
        while time.monotonic() < end:
            for peer, (stream, offset) in sent.items():
                if peer.is_closed:
                    continue
                if stream in peer.ended:
                    stream, offset = peer.open(request_headers(path=path)), 0
                sent[peer] = stream, offset + peer.feed(stream, body[offset:])
                peer.pump(0.0)
            time.sleep(0.02)


def _repeat(target: Target, make: Callable[[Peer], bytes]) -> None:
    """Sends the same on each connection, again and again; a connection that was closed is replaced."""
    with _peers(target) as peers:
        end = time.monotonic() + target.seconds
        while time.monotonic() < end:
            for index, peer in enumerate(peers):
                if peer.is_closed:
                    peers[index] = Peer(target.address)
                with contextlib.suppress(OSError):
                    peers[index].send(make(peers[index]))


def _call(
    target: Target, request: TranslateRequest, compression: grpc.Compression = grpc.Compression.NoCompression
) -> None:
    """Makes calls, a few at a time on each connection, again and again."""
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with contextlib.ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(target.address, options=unlimited))
            for _ in range(target.connections)
        ]
        stubs: list[Any] = [TranslationServiceStub(channel).Translate for channel in channels]
        end = time.monotonic() + target.seconds
        calls: list[Any] = [None] * 4 * len(stubs)
        while time.monotonic() < end:
            for index, call in enumerate(calls):
                if call is None or call.done():
                    stub = stubs[index % len(stubs)]
                    calls[index] = stub.future(request, timeout=_LEGAL_SECONDS, compression=compression)
            time.sleep(_LEGAL_PAUSE_SECONDS)
        for call in calls:
            call.cancel()
