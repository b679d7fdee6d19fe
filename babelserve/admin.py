"""`babelserve-models`: loads, unloads and rolls back versions of a server's models, and shares out their requests.

Exit codes: 0 done; 2 wrong usage, or the server refused it; 3 the server could not be reached, or failed; 141 the
output's reader went away.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import grpc
import shtab

from babelserve.answers import BoundedChannel, answer
from babelserve.channel import call_metadata
from babelserve.connection import Parser, add_version_flag, parse, read_key, seconds_of_a_call
from babelserve.errors import (
    DeadlineExceeded,
    Overloaded,
    ServerFailed,
    TranslationError,
    Unavailable,
    from_rpc_error,
)
from babelserve.proxies import proxy_options, with_proxy
from babelserve.terminal import check_streams, drop_output, in_one_line
from babelserve.v1 import model_admin_pb2 as pb
from babelserve.v1.model_admin_pb2_grpc import ModelAdminStub

EXIT_OK, EXIT_REFUSED, EXIT_SERVER = 0, 2, 3
_DEADLINE_SECONDS = 600.0  # to load a large model from a slow volume
_MODEL_HELP = "its name, as list shows it"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    arguments = parse(build_parser(), argv)
    try:
        check_streams("stdout")
        metadata = call_metadata(read_key(arguments.api_key_file))
        for status in _run(arguments, metadata):
            _show(status)
    except BrokenPipeError:
        return drop_output()
    except (OSError, ValueError) as error:
        return _fail(str(error), EXIT_REFUSED)
    except TranslationError as error:
        is_servers = isinstance(error, Unavailable | ServerFailed | DeadlineExceeded | Overloaded)
        return _fail(f"{arguments.address}: {error.code.name}: {error}", EXIT_SERVER if is_servers else EXIT_REFUSED)
    return EXIT_OK


def _run(arguments: argparse.Namespace, metadata: tuple[tuple[str, str], ...]) -> Sequence[pb.ModelStatus]:
    """Does what the command line asks for; returns how the models stand then."""
    how = {"timeout": arguments.deadline, "metadata": metadata}
    with grpc.insecure_channel(arguments.address, proxy_options(arguments.address)) as channel:
        stub = ModelAdminStub(BoundedChannel(channel))
        try:
            match arguments.action:
                case "list":
                    response: pb.ListVersionsResponse = answer(stub.ListVersions(pb.ListVersionsRequest(), **how))
                    return response.models
                case "load":
                    status = stub.Load(pb.LoadRequest(model=arguments.model, version=arguments.version), **how)
                case "unload":
                    status = stub.Unload(pb.UnloadRequest(model=arguments.model, version=arguments.version), **how)
                case "rollback":
                    status = stub.Rollback(pb.RollbackRequest(model=arguments.model, version=arguments.version), **how)
                case _:
                    traffic = [
                        pb.TrafficShare(version=version, percent=percent) for version, percent in arguments.shares
                    ]
                    status = stub.SetTraffic(pb.SetTrafficRequest(model=arguments.model, traffic=traffic), **how)
            return [answer(status)]
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                why = "this is no admin port, or the server was started without --admin-keys"
                raise ServerFailed(why, code=error.code()) from error
            raise with_proxy(from_rpc_error(error), arguments.address) from error


def _show(status: pb.ModelStatus) -> None:
    pinned = "" if status.follows_folder else " (pinned: new versions in its folder are not taken)"
    lines = [f"{in_one_line(status.model)}{pinned}"]
    for each in status.versions:
        is_known = each.state in pb.VersionStatus.State.values()  # a newer server may have others
        state = pb.VersionStatus.State.Name(each.state).lower() if is_known else "unknown"
        fault = f"  refused: {each.fault}" if each.fault else ""
        lines.append(f"  {in_one_line(f'{each.version}  {state}  {each.traffic_percent} %{fault}')}")
    print("\n".join(lines), flush=True)  # so that a reader who went away is noticed here


def build_parser() -> argparse.ArgumentParser:
    """All actions and flags, with defaults and units in their help."""
    parser = Parser(
        prog="babelserve-models",
        description="Change the versions of a babelserve server's models while it serves; prints how they stand then.",
        epilog="Exit codes: 0 done, 2 usage or refused by the server, 3 server unreachable or failed, 141 the"
        " reader of the output went away.",
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    add_version_flag(parser)
    parser.add_argument(
        "--address",
        default="localhost:50053",
        metavar="HOST:PORT",
        help="the server's admin port, on its own machine or forwarded (default: %(default)s)",
    )
    parser.add_argument("--api-key-file", type=Path, required=True, metavar="FILE", help="file that holds an admin key")
    parser.add_argument(
        "--deadline",
        type=seconds_of_a_call,
        default=_DEADLINE_SECONDS,
        metavar="SECONDS",
        help="longest wait (default: %(default)g)",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="all models and versions")
    for name, text, of_version in (
        (
            "load",
            "load a version beside those that serve",
            "without: the folder's highest, and follow the folder again",
        ),
        ("unload", "unload a version that has no requests", "without: the whole model"),
        ("rollback", "give all requests to an earlier version", "without: the one that had them before"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
        action.add_argument("version", metavar="VERSION", nargs="?", default="", help=of_version)
    traffic = actions.add_parser("traffic", help="share out a model's requests among loaded versions")
    traffic.add_argument("model", metavar="MODEL", help=_MODEL_HELP)
    traffic.add_argument("shares", metavar="VERSION=PERCENT", nargs="+", type=_share, help="adding up to 100")
    return parser


def _share(text: str) -> tuple[str, int]:
    version, _, percent = text.rpartition("=")
    if not version or not percent.isdecimal() or int(percent) > 100:
        raise argparse.ArgumentTypeError(f"must be VERSION=PERCENT, with a percent from 0 to 100, not {text}")
    return version, int(percent)


def _fail(message: str, exit_code: int) -> int:
    print(f"babelserve-models: {in_one_line(message)}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
