"""Files of the repository that only a hosting service reads: they have the right form."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from clone import only_in_clone

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"

pytestmark = only_in_clone

SCHEMAS = {
    "workflows/*.yml": "github-workflows",
    "ISSUE_TEMPLATE/[!c]*.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
    "dependabot.yml": "dependabot",
    "../CITATION.cff": "citation-file-format",
}


def validate(schema: str, paths: list[Path]) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)


@pytest.mark.parametrize("pattern", SCHEMAS)
def test_files_for_the_hosting_service_match_their_schema(pattern):
    folder, _, name = pattern.rpartition("/")
    paths = sorted((GITHUB / folder).glob(name))
    assert paths
    ended = validate(SCHEMAS[pattern], paths)
    assert ended.returncode == 0, ended.stdout


def test_a_workflow_with_a_misspelled_key_is_found(tmp_path):
    text = (GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8")
    path = tmp_path / "ci.yml"
    path.write_text(text.replace("runs-on:", "run-on:"), encoding="utf-8")
    assert validate("github-workflows", [path]).returncode != 0


def test_hosted_jobs_are_those_of_the_local_script():
    local = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    jobs = re.search(r"set -- (.*)", local)[1].split()
    workflow = (GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.search(r"job: \[(.*)\]", workflow)[1].split(", ") == jobs


def test_hosted_pythons_are_those_that_the_package_declares():
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    workflow = (GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1]) == declared


@pytest.mark.parametrize(
    ("tag", "message"),
    [("v9.9.9", "The tag is v9.9.9, but the version in src/calibrant/__init__.py is")],
)
def test_a_release_whose_tag_is_not_the_version_stops(tag, message, tmp_path):
    ended = subprocess.run(
        [ROOT / ".ci" / "check-release", tag, tmp_path], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(message)
