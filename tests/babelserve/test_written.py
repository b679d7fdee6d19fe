import io
import json

import grpc
import pytest
from tqdm import tqdm

from babelserve.files import Done
from babelserve.lines import Line, TranslatedLine, failed_line
from babelserve.results import FinishReason, Hypothesis, Translation
from babelserve.written import to_json, write_lines


def translated(text: str, score: float = -1.0) -> TranslatedLine:
    translation = Translation(
        text=text,
        score=score,
        finish_reason=FinishReason.STOP,
        hypotheses=(Hypothesis(text=text, score=score),),
        sentences=(),
        source_tokens=1,
        target_tokens=1,
        error=None,
    )
    return TranslatedLine(translation=translation, num_bytes=3, model="m", model_version="1")


def written(*lines: TranslatedLine, done: Done | None = None, as_json: bool = False) -> tuple[str, list[object], bool]:
    """What is written and told, and whether all is well."""
    output, told = io.BytesIO(), list[object]()
    with tqdm(disable=True) as progress:
        is_whole = write_lines(
            iter([list(lines)]), output, progress, done or Done(), told.append, as_json=as_json, one_line=True
        )
    return output.getvalue().decode(), told, is_whole


def test_a_line_break_in_a_translation_does_not_shift_the_lines_behind() -> None:
    assert written(translated("A\nB"), translated("C\x1b")) == ("A B\nC\x1b\n", [], True)


def test_lines_that_fail_are_told_by_their_numbers() -> None:
    failed = failed_line(Line(text="b", num_bytes=2), grpc.StatusCode.INTERNAL, "oops")

    assert written(translated("A"), failed, done=Done(num_lines=2)) == ("A\n\n", ["line 4: INTERNAL: oops"], False)


def test_lines_that_had_failed_before_count() -> None:
    text, told, is_whole = written(done=Done(num_lines=2, num_failed=1))

    assert (text, told, is_whole) == ("", ["of the 2 lines that were done, 1 have no translation"], False)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_has_no_number_that_is_none(number: float) -> None:
    text, _, _ = written(translated("NaN \u00fc", number), as_json=True)

    facts = json.loads(text, parse_constant=pytest.fail)
    assert (facts["text"], facts["score"]) == ("NaN \u00fc", None)
    assert facts["hypotheses"] == [{"text": "NaN \u00fc", "score": None}]


def test_json_has_no_control_characters() -> None:
    fields: dict[str, object] = {"text": "\x1b\x7f\x9b2J\u202e \u00fc\n"}

    text = to_json(fields)

    assert text.isprintable()
    assert "\u00fc" in text
    assert json.loads(text) == fields
