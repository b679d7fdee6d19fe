"""Do both systems compute the same thing? fp32 ids against each other, and int8 ids alone against ids in company.

A translation that runs away is cut at a limit, which in CTranslate2 is one for the whole call, not the sentence's own.
So only ids up to the sentence's own limit are compared, and where these differ (a beam search knows its limit) the
sentence is left out and counted as cut.
"""

from collections import Counter
from collections.abc import Sequence

from export.verify import NEAR_TIE, tie_gap
from model.search import default_max_tokens
from server.models.machine import usable_cores
from server.settings.settings import Settings as ServerSettings
from tests.bench.models import Model
from tests.bench.record import Row
from tests.bench.report import print_table
from tests.bench.rounds import length_facts
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker

DIFFERENT = "different ids"
_EQUAL, _NEAR_TIE, _CUT = "equal ids", "near-ties", "cut by the limit"


def our_settings(model: Model, variant: str, *, shortlist: bool = False) -> Settings:
    """Returns how our engine runs with the server's defaults."""
    device = variant.partition("-")[0]
    return Settings(
        system="ours",
        path=str(model.bundle.directory),
        precision=variant,
        device=device,
        workers=usable_cores() if device == "cpu" else 1,
        batch=ServerSettings().max_rows,
        shortlist=shortlist,
    )


def their_settings(model: Model, precision: str, device: str = "cpu", *, shortlist: bool = False) -> Settings:
    """Returns how CTranslate2 runs where speed does not matter."""
    path = model.ctranslate2["int8" if precision == "int8" else "float32"]
    workers = usable_cores() if device == "cpu" else 1
    return Settings(
        system="ctranslate2", path=str(path), precision=precision, device=device, workers=workers, shortlist=shortlist
    )


def pytorch_settings(model: Model, batch: int) -> Settings:
    """Returns how the plain PyTorch decoder runs on a GPU, by batches of so many tokens."""
    path = str(model.checkpoint_path)
    return Settings(system="pytorch", path=path, precision="float16", device="cuda", workers=1, batch=batch)


def check_same_ids(model: Model, sources: Sequence[Ids]) -> list[Row]:
    """Compares fp32 translations; a difference must be a near-tie under the torch model.

    They are greedy, beam 4, and greedy with the shortlist one sentence at a time: CTranslate2 restricts a batch to what
    any sentence of it may use, so only alone are both systems the same function.

    Returns:
        By way how many are equal, near-ties, really different (`DIFFERENT`), or cannot be compared since a limit cut
        them; and the distribution of lengths.
    """
    torch_model = model.checkpoint.build_model()
    limit = model.bundle.manifest.limits.max_target_tokens
    rows: list[Row] = []
    table: list[list[object]] = []
    for way, beam_size, shortlist in (("greedy", 1, False), ("beam 4", 4, False), ("greedy, shortlist", 1, True)):
        ids = {}
        for settings in (
            our_settings(model, "cpu-fp32", shortlist=shortlist),
            their_settings(model, "float32", shortlist=shortlist),
        ):
            with Worker(settings) as worker:
                found = worker.translate(sources, beam_size=beam_size, one_by_one=shortlist, with_ids=True)
                ids[settings.system] = found["ids"]
        counts = Counter[str]()
        for i, (source, ours, theirs) in enumerate(zip(sources, ids["ours"], ids["ctranslate2"], strict=True)):
            most = default_max_tokens(len(source), limit)
            if ours[:most] == theirs[:most]:
                counts[_EQUAL] += 1
                continue
            if max(len(ours), len(theirs)) >= most:
                counts[_CUT] += 1
                continue
            gap = tie_gap(torch_model, list(source), ours, theirs, most, is_greedy=beam_size == 1)
            print(f"{way}, sentence {i}: {len(ours)} and {len(theirs)} ids, {gap:.1e} apart")
            counts[_NEAR_TIE if gap <= NEAR_TIE else DIFFERENT] += 1
        facts = {name: float(counts[name]) for name in (_EQUAL, _NEAR_TIE, _CUT, DIFFERENT)}
        facts |= length_facts([len(each) for each in ids["ours"]], sources)
        rows += [
            Row(
                section="ids", model=model.name, setting=f"fp32 {way}", measure=name, ours=value, sentences=len(sources)
            )
            for name, value in facts.items()
        ]
        table.append([way, *facts.values()])
    title = f"fp32: the same ids from both systems, of {len(sources)}, and the lengths that the weights give"
    print_table(title, ["way", *facts], table)
    return rows


def check_neighbours(model: Model, sources: Sequence[Ids]) -> list[Row]:
    """Counts the sentences whose ids alone are their ids among all others, greedy and beam 4."""
    limit = model.bundle.manifest.limits.max_target_tokens
    rows: list[Row] = []
    ways = [our_settings(model, variant) for variant in model.bundle.manifest.variants]
    if model.ctranslate2 and "cpu-int8" in model.bundle.manifest.variants:
        ways.append(their_settings(model, "int8"))
    for settings in ways:
        with Worker(settings) as worker:
            for beam_size in (1, 4):
                together = worker.translate(sources, beam_size=beam_size, with_ids=True)["ids"]
                alone = worker.translate(sources, beam_size=beam_size, one_by_one=True, with_ids=True)["ids"]
                same = num_cut = 0
                for source, one, other in zip(sources, together, alone, strict=True):
                    most = default_max_tokens(len(source), limit)
                    is_same = one[:most] == other[:most]
                    same += is_same
                    num_cut += not is_same and max(len(one), len(other)) >= most
                rows.append(
                    Row(
                        section="neighbours",
                        model=model.name,
                        setting=f"{settings.precision}, beam {beam_size}",
                        measure="sentences with the same ids alone",
                        sentences=len(sources) - num_cut,
                        **{"ours" if settings.system == "ours" else "theirs": float(same)},  # type: ignore[arg-type]
                    )
                )
    table = [[row.setting, row.ours if row.theirs is None else row.theirs, row.sentences] for row in rows]
    print_table("ids alone = ids among neighbours", ["setting", "same", "of"], table)
    return rows
