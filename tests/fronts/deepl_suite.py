"""DeepL's own Python suite against this server, and against DeepL's mock: how many of its cases pass.

It is run by hand, with a checkout of github.com/DeepLcom/deepl-python, and for the mock one of
github.com/DeepLcom/deepl-mock after `npm install`:

    python -m tests.fronts.deepl_suite deepl-python --mock deepl-mock

It prints the cases that fail with each of three servers: of the built-in models as they are; of these with house
glossaries of what the suite calls "proton beam"; and of these with copies of the models under the codes of other
languages, which show that the front serves these languages, and not that a model knows them.
"""

import argparse
import ast
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from server.access.keys import hash_key
from tests.acceptance.server_process import BUILTIN_BUNDLE, free_ports, running_server
from tests.fronts.environments import environment_of

KEY = "key"
TITLE = "A document's title", "Der Titel eines Dokuments"  # as the suite's case of XML wants it


def main() -> None:
    """Runs the suite with each server, and prints what fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="checkout of deepl-python")
    parser.add_argument("--mock", type=Path, help="checkout of deepl-mock with its packages")
    arguments = parser.parse_args()
    texts = example_texts(arguments.suite)
    with tempfile.TemporaryDirectory() as folder:
        keys, glossaries, models = (Path(folder, name) for name in ("keys.toml", "glossaries", "models"))
        keys.write_text(f'[tenants.suite]\nkeys = [{{ sha256 = "{hash_key(KEY).hex()}" }}]\n')
        names = write_glossaries(glossaries, texts)
        copy_models(models, [code for code in texts if "-" not in code and code not in ("DE", "EN")])
        plain, terms = ["--keys", str(keys)], ["--glossaries", str(glossaries), "--house-glossaries"]
        own = ",".join(name for name in names if name in ("en-de", "de-en"))
        for name, flags in {
            "built-in models": [*plain, "--models", "builtin"],
            "and house glossaries": [*plain, "--models", "builtin", *terms, own],
            "and copies under other codes": [*plain, "--models", str(models), *terms, ",".join(names)],
        }.items():
            (port,) = free_ports(1)
            with running_server([*flags, "--http-port", str(port)]):
                run(name, arguments.suite, {"DEEPL_SERVER_URL": f"http://127.0.0.1:{port}/", "DEEPL_AUTH_KEY": KEY})
    if arguments.mock:
        with running_mock(arguments.mock) as url:
            run("DeepL's mock", arguments.suite, {"DEEPL_SERVER_URL": url, "DEEPL_AUTH_KEY": KEY})


def example_texts(suite: Path) -> dict[str, str]:
    """Returns what the suite calls "proton beam", by language."""
    tree = ast.parse((suite / "tests" / "conftest.py").read_text(encoding="utf-8"))
    values = [each.value for each in tree.body if isinstance(each, ast.Assign) and "example_text" in ast.dump(each)]
    found: dict[str, str] = ast.literal_eval(values[0])
    return found


def write_glossaries(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Writes a glossary of each direction between English and another language, and returns their names."""
    folder.mkdir()
    names = []
    for code, text in texts.items():
        if "-" in code or code == "EN":
            continue
        for source, target, rows in (
            (code, "EN", [(text, texts["EN"])]),
            ("EN", code, [(texts["EN"], text), TITLE]),
            (code, "DE", [(text, texts["DE"])]),
        ):
            if source != target:
                names.append(f"{source}-{target}".lower())
                lines = [(source.lower(), target.lower()), *rows]
                content = "".join(f"{before}\t{after}\n" for before, after in lines)
                (folder / f"{names[-1]}.tsv").write_text(content, encoding="utf-8")
    return names


def copy_models(folder: Path, codes: Sequence[str]) -> None:
    """Copies the built-in models, and copies them again under other languages: into English and German, and from it."""
    for name in ("en-de", "de-en"):
        shutil.copytree(BUILTIN_BUNDLE.parent / name, folder / name)
    others = [code.lower() for code in codes]
    for name, model, pairs in (
        ("x-en", "de-en", [(code, "en") for code in others]),
        ("en-x", "en-de", [("en", code) for code in others]),
        ("x-de", "en-de", [(code, "de") for code in others]),
    ):
        shutil.copytree(BUILTIN_BUNDLE.parent / model, folder / name)
        path = folder / name / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        empty: dict[str, object] = {"source_prefix": [], "target_prefix": []}
        manifest |= {"name": name, "language_pairs": [{"source": a, "target": b} | empty for a, b in pairs]}
        manifest["golden"] |= {"source_language": pairs[0][0], "target_language": pairs[0][1]}
        path.write_text(json.dumps(manifest), encoding="utf-8")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        path.with_name("manifest.json.sha256").write_text(f"{digest}  manifest.json\n", encoding="utf-8")


@contextlib.contextmanager
def running_mock(checkout: Path) -> Iterator[str]:
    """Runs DeepL's mock, and gives its address."""
    (port,) = free_ports(1)
    environment = os.environ | {"DEEPL_MOCK_SERVER_PORT": str(port)}
    process = subprocess.Popen(["node", "index.js"], cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if "listening" in line)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def run(name: str, suite: Path, variables: Mapping[str, str]) -> None:
    """Runs the suite, and prints how many cases pass and which fail."""
    python = environment_of("deepl_suite") / "bin" / "python"
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [str(python), "-m", "pytest", "tests", "-q", f"--junitxml={report.name}"]
        subprocess.run(command, cwd=suite, env=os.environ | variables, stdout=subprocess.DEVNULL, check=False)
        cases = list(ET.parse(report.name).iter("testcase"))
    failed = [
        each.get("name", "") for each in cases if each.find("failure") is not None or each.find("error") is not None
    ]
    skipped = sum(each.find("skipped") is not None for each in cases)
    passed = len(cases) - len(failed) - skipped
    print(
        f"{name}: {passed} of {len(cases)} pass, {skipped} are skipped, {len(failed)} fail: {', '.join(failed)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
