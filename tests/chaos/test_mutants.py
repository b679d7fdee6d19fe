import pytest

from tests.acceptance.server_process import REPOSITORY
from tests.chaos.__main__ import CASES
from tests.chaos.mutants import MUTANTS, Edit


@pytest.mark.parametrize("edit", [edit for mutant in MUTANTS for edit in mutant.edits], ids=lambda edit: edit.path)
def test_a_mutant_still_fits_the_code(edit: Edit) -> None:
    assert (REPOSITORY / edit.path).read_text(encoding="utf-8").count(edit.old) >= 1


def test_each_mutant_has_a_case_that_must_catch_it() -> None:
    assert {mutant.case for mutant in MUTANTS} <= {case.name for case in CASES}
    assert len(MUTANTS) == 10
