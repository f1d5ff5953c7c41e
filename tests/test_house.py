"""Three floors, and imports that point one way: none hides in a function, none in a cycle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASE = {"learning", "environments", "world", "places"}
MAY_IMPORT = {
    "learning": {"learning"},
    "places": set(),
    "environments": {"learning", "places"},
    "world": {"learning"},
    "experiments": BASE | {"experiments"},
    "studies": BASE | {"studies"},
    "cli": BASE | {"experiments", "studies"},
}
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "dopl_core").rglob("*.py")
    if "migrations" not in path.parts
}


def imports(path: Path) -> set[str]:
    """Every module of ours that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inside if name in FILES} or {node.module}
    return {name for name in found if name.split(".")[0] in ("dopl_core", "pages", "streamlit")}


def floor(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_point_down_the_house(module: str) -> None:
    for name in imports(FILES[module]):
        assert name.startswith("dopl_core"), f"{module} imports {name}"
        if floor(module):
            assert floor(name) in MAY_IMPORT[floor(module)], f"{module} imports {name}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imports(path) & FILES.keys() for module, path in FILES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle: {' -> '.join(error.args[1])}")


def test_a_wrong_import_would_be_seen(tmp_path: Path) -> None:
    """The walk sees imports of modules, of names in them, and those inside functions."""
    file = tmp_path / "any.py"
    file.write_text(
        "import dopl_core.studies.fold\n"
        "from dopl_core.experiments import sweep\n"
        "def f():\n    from dopl_core.studies.config import Arm\n    import streamlit\n"
    )
    assert imports(file) == {
        "dopl_core.studies.fold",
        "dopl_core.experiments.sweep",
        "dopl_core.studies.config",
        "streamlit",
    }


def test_pages_are_thin_and_no_file_is_long() -> None:
    others = [*(ROOT / "pages").glob("*.py"), *(ROOT / "tests").rglob("*.py")]
    for path in [*FILES.values(), *others]:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 450, f"{path}: {lines} lines"
    for path in (ROOT / "pages").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "sqlalchemy" not in text, f"{path}: pages know no SQL"
        assert "numpy" not in text, f"{path}: pages do no maths"
