"""The bill of materials that comes with a release."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.slow
def test_the_bill_of_materials_names_every_package_with_its_digests(tmp_path: Path) -> None:
    """Made as the release makes it, without the check by the schema, which takes most of it."""
    file = tmp_path / "made" / "gta_bench.cdx.json"
    variables = [f"VENV={sys.prefix}", f"SBOM={file}", "SBOM_OPTIONS=--no-validate"]
    subprocess.run(["make", "sbom", *variables], cwd=REPOSITORY, check=True, capture_output=True)
    bill = json.loads(file.read_text(encoding="utf-8"))
    assert bill["bomFormat"] == "CycloneDX"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    main = bill["metadata"]["component"]
    assert (main["name"], main["version"]) == ("gta-bench", project["version"])
    text = (REPOSITORY / "requirements-hashed.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    assert {(one["name"], one["version"]) for one in bill["components"]} == pinned
    assert {one["purl"].partition("@")[0] for one in bill["components"]} >= {"pkg:pypi/inspect-ai"}
    for one in bill["components"]:
        assert one["externalReferences"][0]["hashes"][0]["alg"] == "SHA-256"
