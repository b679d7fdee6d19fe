"""The pictures of a comparison of networks."""

from pathlib import Path

from tests.bench.network_pictures import draw


def test_each_picture_is_drawn_though_a_network_takes_one_step(tmp_path: Path) -> None:
    scores = {length: {"chrf": [50.0, 1.0], "bleu": [20.0, 1.0]} for length in ("all", "1-5", "6-20")}
    found = {"tokens/s": 1000.0, "alone ms": 5.0, "domains": {"captions": {"scores": scores}}}
    networks = {"ssru": {**found, "step us by position": {"25": 90.0}}, "ctc": {**found, "step us by position": {}}}

    paths = draw(networks, tmp_path / "pictures")

    assert [path.name for path in paths] == ["networks-speed.png", "networks-length.png", "networks-steps.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
