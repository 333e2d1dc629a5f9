"""What type checkers are told is what there is."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import elastripe
from elastripe import _native

PYTHON = Path(__file__).resolve().parent.parent


def test_the_types_of_options_are_those_of_the_commands() -> None:
    spec = importlib.util.spec_from_file_location("options", PYTHON / "tools" / "options.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found = (PYTHON / "elastripe" / "_options.py").read_text()
    assert tool.printed() == found, "run: python tools/options.py > elastripe/_options.py"


def test_the_stub_has_all_that_the_compiled_part_has() -> None:
    stub = ast.parse((PYTHON / "elastripe" / "_native.pyi").read_text())
    named = {node.name: node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public = {name for name in named if not name.startswith("_")}
    assert public == {name for name in vars(_native) if not name.startswith("_")}
    for name in public:
        node, real = named[name], getattr(_native, name)
        if isinstance(node, ast.FunctionDef):
            arguments = [argument.arg for argument in node.args.args]
            signature = (real.__text_signature__ or "").strip("()").replace("$self", "")
            assert [
                part.split("=")[0].strip() for part in signature.split(",") if part.strip()
            ] == arguments, name
        else:
            members = {part.name for part in node.body if isinstance(part, ast.FunctionDef)} - {"__init__"}
            assert members <= set(dir(real)), name


def test_everything_that_is_exported_is_documented() -> None:
    for name in elastripe.__all__:
        value = getattr(elastripe, name)
        if callable(value):
            assert value.__doc__, name


def test_the_package_the_examples_and_the_tests_type_check(tmp_path: Path) -> None:
    folders = [str(PYTHON / name) for name in ("elastripe", "examples", "tools", "tests")]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(PYTHON / "pyproject.toml"),
        "--cache-dir",
        str(tmp_path),
    ]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, cwd=PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr
