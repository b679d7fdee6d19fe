"""What a variant costs where nobody knows the right translations: how far its own are from the exact variant's."""

from typing import Any

import sacrebleu

from export.verify import VerificationError

MIN_CHRF = 85.0


def measure_agreement(translations: list[str], exact: list[str]) -> dict[str, Any]:
    """Compares a variant's translations with those of the exact one: 100 is the same."""
    metric = sacrebleu.metrics.CHRF()
    return {
        "sentences": len(exact),
        "identical": sum(one == other for one, other in zip(translations, exact, strict=True)),
        "chrf_to_fp32": round(metric.corpus_score(translations, [exact]).score, 2),
        "chrf_signature": str(metric.get_signature()),
    }


def check_agreement(quality: dict[str, dict[str, Any]], min_chrf: float) -> None:
    """Compares what has been measured of each variant, with its shortlist too, with what it must reach.

    Raises:
        VerificationError: with all that do not.
    """
    failures = [
        f"{name} reaches chrF {found['chrf_to_fp32']} to cpu-fp32's translations, at least {min_chrf} is needed"
        for name, found in quality.items()
        if found["chrf_to_fp32"] < min_chrf
    ]
    if failures:
        remedy = "calibrate with 200 sentences of the kind that the model will translate (--text), or lower --min-chrf"
        raise VerificationError(f"{'; '.join(failures)}: {remedy}")
