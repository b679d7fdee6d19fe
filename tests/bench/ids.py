"""Do both systems compute the same thing? fp32 ids against each other, and int8 ids alone against ids in company.

A translation that runs away is cut at a limit, which in CTranslate2 is one for the whole call, not the sentence's own.
So only ids up to the sentence's own limit are compared, and where these differ (a beam search knows its limit) the
sentence is left out and counted as cut.
"""

from collections.abc import Sequence
from typing import Any

from export.verify import NEAR_TIE, tie_gap
from model.search import default_max_tokens
from server.models.machine import usable_cores
from server.settings.settings import Settings as ServerSettings
from tests.bench.models import Model
from tests.bench.report import print_table
from tests.bench.rounds import length_facts
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker


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


def check_same_ids(model: Model, sources: Sequence[Ids]) -> dict[str, Any]:
    """Compares fp32 translations; a difference must be a near-tie under the torch model.

    They are greedy, beam 4, and greedy with the shortlist one sentence at a time: CTranslate2 restricts a batch to what
    any sentence of it may use, so only alone are both systems the same function.

    Returns:
        By way the sentences, how many are equal, the near-ties, the real differences, those that cannot be
        compared since a limit cut them; and the distribution of lengths.
    """
    torch_model = model.checkpoint.build_model()
    limit = model.bundle.manifest.limits.max_target_tokens
    report: dict[str, Any] = {}
    rows: list[list[object]] = []
    for way, beam_size, shortlist in (("beam_1", 1, False), ("beam_4", 4, False), ("beam_1_shortlist", 1, True)):
        ids = {}
        for settings in (
            our_settings(model, "cpu-fp32", shortlist=shortlist),
            their_settings(model, "float32", shortlist=shortlist),
        ):
            with Worker(settings) as worker:
                found = worker.translate(sources, beam_size=beam_size, one_by_one=shortlist, with_ids=True)
                ids[settings.system] = found["ids"]
        near_ties: list[str] = []
        differences: list[str] = []
        num_cut = 0
        for i, (source, ours, theirs) in enumerate(zip(sources, ids["ours"], ids["ctranslate2"], strict=True)):
            most = default_max_tokens(len(source), limit)
            if ours[:most] == theirs[:most]:
                continue
            if max(len(ours), len(theirs)) >= most:
                num_cut += 1
                continue
            gap = tie_gap(torch_model, list(source), ours, theirs, most, is_greedy=beam_size == 1)
            note = f"sentence {i}: {len(ours)} and {len(theirs)} ids, {gap:.1e} apart"
            (near_ties if gap <= NEAR_TIE else differences).append(note)
        lengths = length_facts([len(each) for each in ids["ours"]], sources)
        equal = len(sources) - len(near_ties) - len(differences) - num_cut
        report[way] = {
            "sentences": len(sources),
            "equal": equal,
            "near_ties": near_ties,
            "differences": differences,
            "cut_by_the_limit": num_cut,
            "lengths": lengths,
        }
        rows.append([way, f"{equal}/{len(sources)}", len(near_ties), num_cut, len(differences), *lengths.values()])
        for note in [*near_ties, *differences]:
            print(f"{way}, {note}")
    header = ["way", "equal ids", "near-ties", "cut", "differences", "target/source", "p5", "p50", "p95", "std"]
    print_table("fp32: the same ids from both systems, and the lengths that the weights give", header, rows)
    return report


def check_neighbours(model: Model, sources: Sequence[Ids]) -> dict[str, Any]:
    """Counts the sentences whose ids alone are their ids among all others, greedy and beam 4."""
    limit = model.bundle.manifest.limits.max_target_tokens
    report: dict[str, Any] = {}
    rows: list[list[object]] = []
    ways = [our_settings(model, variant) for variant in model.bundle.manifest.variants]
    if "cpu-int8" in model.bundle.manifest.variants:
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
                compared = len(sources) - num_cut
                name = f"{settings.system} {settings.precision}"
                report[f"{name}, beam {beam_size}"] = {
                    "sentences": compared,
                    "same_alone": same,
                    "cut_by_the_limit": num_cut,
                }
                rows.append([name, beam_size, f"{same}/{compared}", f"{same / max(1, compared):.1%}", num_cut])
    print_table("ids alone = ids among neighbours", ["system", "beam", "same", "share", "cut"], rows)
    return report
