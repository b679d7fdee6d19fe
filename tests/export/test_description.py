from export.description import described_quality, described_sizes
from server.bundle.bundle import Bundle


def test_sizes_are_those_of_all_files_of_a_variant_and_of_what_is_shared(tiny_bundle: Bundle) -> None:
    sizes = {
        path.name: sum(file.stat().st_size for file in path.iterdir()) / 1e6
        for path in tiny_bundle.directory.iterdir()
        if path.is_dir()
    }
    sizes["halves.bin"] = (tiny_bundle.directory / "halves.bin").stat().st_size / 1e6

    said = described_sizes(tiny_bundle.manifest).split(", ")

    assert sorted(said) == sorted(f"{name} {size:.1f} MB" for name, size in sizes.items())


def test_quality_is_told_by_references_or_by_the_exact_variant() -> None:
    by_references = {"sentences": 200, "bleu": 20.5, "chrf": 45.25, "bleu_signature": "x", "seconds": 1.0}
    by_itself = {"sentences": 34, "identical": 13, "chrf_to_fp32": 85.98, "chrf_signature": "x"}

    assert described_quality(by_references) == "BLEU 20.50, chrF 45.25 on 200 dev sentences"
    assert described_quality(by_itself) == "13 of 34 as in float32, chrF between them 85.98"
