"""For each alert that is shipped, a real fault for which it must fire."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.chaos import alert_scenes as scenes
from tests.chaos.failpoints import Action, Point
from tests.chaos.servers import Spec

CALM_RATE = 20.0  # calls a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault, and whom it calls.

    Attributes:
        name: what is done.
        expected: the alerts that must fire.
        scene: makes it.
        within: seconds until the server has noticed, and the alerts have lasted, at the scaled pace.
        allowed: alerts that may fire besides.
        rate: calls a second; 0 for none.
    """

    name: str
    expected: frozenset[str]
    scene: Callable[[], AbstractContextManager[scenes.Scene]]
    within: float = 5.0
    allowed: frozenset[str] = frozenset()
    rate: float = CALM_RATE


def _names(words: str) -> frozenset[str]:
    return frozenset(f"Babelserve{word}" for word in words.split())


_ERRORS, _LATE = _names("ErrorsFast ErrorsSteady ErrorsSlow"), _names("LateFast LateSteady LateSlow")
FAULTS = (
    Fault(
        name="kill -9",
        expected=_names("Down"),
        scene=lambda: scenes.struck(scenes.kill),
    ),
    Fault(
        name="the server is told to stop, and lingers",
        expected=_names("NotReady"),
        scene=lambda: scenes.struck(scenes.terminate, flags=["--drain-delay", "60"]),
        within=12.0,
    ),
    Fault(
        name="every reply fails",
        expected=_ERRORS,
        scene=lambda: scenes.armed(Point.BEFORE_REPLY, Action.RAISE, -1),
    ),
    Fault(
        name="one reply in a hundred fails",
        expected=_names("ErrorsSteady ErrorsSlow"),
        scene=lambda: scenes.failing_each(100),
        within=30.0,
        rate=50.0,
    ),
    Fault(
        name="one reply in four hundred fails",
        expected=_names("ErrorsSlow"),
        scene=lambda: scenes.failing_each(400),
        within=30.0,
        rate=50.0,
    ),
    Fault(
        name="every other call takes more than 2 s",
        expected=_LATE,
        scene=lambda: scenes.nothing(Spec(step_seconds=0.17)),
        within=15.0,
    ),
    Fault(
        name="one call in eleven takes more than 2 s",
        expected=_names("LateSteady LateSlow"),
        scene=lambda: scenes.nothing(Spec(step_seconds=0.13, habit="is long one time in eleven")),
        within=30.0,
    ),
    Fault(
        name="one call in thirty-one takes more than 2 s",
        expected=_names("LateSlow"),
        scene=lambda: scenes.nothing(Spec(step_seconds=0.13, habit="is long one time in thirty-one")),
        within=30.0,
    ),
    Fault(
        name="overload, three times what the server can do",
        expected=_names("Overloaded"),
        scene=lambda: scenes.nothing(Spec(step_seconds=0.02, row_seconds=0.001)),
        within=10.0,
        rate=150.0,
        allowed=_ERRORS | _LATE,  # an answer that comes too late fails its call
    ),
    Fault(
        name="a lane hangs, and the process ends",
        expected=_names("Down"),
        scene=lambda: scenes.armed(Point.BEFORE_STEP, Action.HANG, 1),
        within=35.0,
        allowed=_ERRORS | _LATE | _names("Overloaded"),
    ),
    Fault(
        name="a lane hangs, and the supervisor does not see it",
        expected=_names("LaneDead"),
        scene=lambda: scenes.armed(Point.BEFORE_STEP, Action.HANG, 1, Spec(sees_hangs=False)),
        within=35.0,
        allowed=_ERRORS | _LATE | _names("Overloaded"),
    ),
    Fault(
        name="an idle lane answers its canary wrong, and its replacement right",
        expected=_names("LaneLies"),
        scene=lambda: scenes.armed(Point.AFTER_STEP, Action.CONSTANT, 1),
        within=15.0,
        rate=0.0,
    ),
    Fault(
        name="two steps fail",
        expected=_names("StepsFail"),
        scene=lambda: scenes.armed(Point.BEFORE_STEP, Action.RAISE, 2),
        allowed=_ERRORS,
    ),
    Fault(
        name="the server is killed and started twice",
        expected=_names("Restarts"),
        scene=scenes.restarted,
        within=20.0,
        allowed=_ERRORS | _LATE | _names("Down"),
    ),
    Fault(
        name="the process is stopped for 0.6 s of each second",
        expected=_names("EventLoopLate"),
        scene=lambda: scenes.struck(scenes.pause),
        within=20.0,
        allowed=_ERRORS | _LATE | _names("Down Overloaded"),
    ),
    Fault(
        name="the certificate ends in ten days",
        expected=_names("CertificateExpires"),
        scene=lambda: scenes.certificate(10),
        rate=0.0,
    ),
    Fault(
        name="the certificate ends in a day",
        expected=_names("CertificateExpires CertificateExpiresNow"),
        scene=lambda: scenes.certificate(1),
        rate=0.0,
    ),
    Fault(
        name="the file of keys becomes a bad one",
        expected=_names("ReloadFailed"),
        scene=lambda: scenes.bad_file(
            "--keys", "keys.toml", f'[tenants.a]\n[[tenants.a.keys]]\nsha256 = "{"0" * 64}"\n'
        ),
        within=12.0,
        rate=0.0,
    ),
    Fault(
        name="the next version of a model is a bad bundle",
        expected=_names("ModelRefused"),
        scene=scenes.bad_version,
        within=20.0,
    ),
    Fault(
        name="the file of a glossary becomes a bad one",
        expected=_names("GlossaryRefused"),
        scene=lambda: scenes.bad_file("--glossaries", "travel.tsv", "en\tde\nstation\tBahnhof\n"),
        within=15.0,
    ),
    Fault(
        name="what reads the log ends",
        expected=_names("LogLost"),
        scene=scenes.log_without_reader,
        within=15.0,
    ),
    Fault(
        name="two replicas have different files of one version",
        expected=_names("ModelsDiffer"),
        scene=scenes.unlike_replicas,
        within=32.0,
        rate=0.0,
    ),
    Fault(
        name="a model repeats itself",
        expected=_names("Repetitive"),
        scene=lambda: scenes.nothing(Spec(habit="repeats")),
        within=20.0,
        allowed=_names("Truncated"),
    ),
    Fault(
        name="a model writes bytes that are no text",
        expected=_names("Garbled"),
        scene=lambda: scenes.nothing(Spec(habit="writes bytes")),
        within=20.0,
    ),
    Fault(
        name="a model does not end its sentences",
        expected=_names("Truncated"),
        scene=lambda: scenes.nothing(Spec(habit="never ends")),
        within=20.0,
        allowed=_LATE | _names("Repetitive"),
    ),
)
