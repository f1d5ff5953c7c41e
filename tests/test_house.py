"""The architecture: imports point one way, and pages are thin."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASE = {"learning", "environments", "validation", "wording", "world", "paths"}
MAY_IMPORT = {
    "learning": {"learning", "paths", "validation"},
    "paths": set(),
    "validation": set(),
    "wording": {"paths"},
    "catalogues": {"paths", "wording"},
    "environments": {"learning", "paths", "validation"},
    "world": {"learning"},
    "experiments": BASE | {"experiments"},
    "studies": BASE | {"studies"},
    "cli": BASE | {"catalogues", "experiments", "studies"},
}
# Packages of dopl_core/studies: each may import itself and those before it.
PACKAGES = ("model", "store", "replay", "collect", "operate", "exchange", "analysis")
LAST = ("members", "roles", "audit", "access", "diagnostics", "weekly_cli", "access_cli")
LAST += ("erasure_cli", "power_cli", "cli")
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "dopl_core").rglob("*.py")
    if "migrations" not in path.parts
}
PAGES = sorted((ROOT / "pages").rglob("*.py"))


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


def part(module: str, depth: int) -> str:
    """The name at a depth of a dotted module: part("dopl_core.studies.store", 2) is "store"."""
    names = module.split(".")
    return names[depth] if len(names) > depth else ""


@pytest.mark.parametrize("module", sorted(FILES))
def test_imports_point_one_way(module: str) -> None:
    for name in imports(FILES[module]):
        assert name.startswith("dopl_core"), f"{module} imports {name}"
        if part(module, 1):
            assert part(name, 1) in MAY_IMPORT[part(module, 1)], f"{module} imports {name}"


@pytest.mark.parametrize("module", sorted(m for m in FILES if m.startswith("dopl_core.studies.")))
def test_packages_of_studies_import_only_earlier_packages(module: str) -> None:
    order = (*PACKAGES, *LAST)
    package = part(module, 2)
    allowed = order[: order.index(package) + 1]
    for name in imports(FILES[module]):
        if name == "dopl_core.studies":
            assert package in LAST, f"{module} imports the interface of dopl_core.studies"
        elif name.startswith("dopl_core.studies."):
            assert part(name, 2) in allowed, f"{module} imports {name}"


IN_PACKAGES = sorted(m for m in FILES if m.startswith("dopl_core.learning.") and m.count(".") == 3)


@pytest.mark.parametrize("module", IN_PACKAGES)
def test_packages_of_learning_import_no_other_package_of_it(module: str) -> None:
    others = {part(name, 2) for name in IN_PACKAGES} - {part(module, 2)}
    for name in imports(FILES[module]):
        assert part(name, 2) not in others, f"{module} imports {name}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imports(path) & FILES.keys() for module, path in FILES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle: {' -> '.join(error.args[1])}")


def test_the_walk_sees_imports_anywhere_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "any.py"
    file.write_text(
        "import dopl_core.studies.store.tables\n"
        "from dopl_core.experiments import sweep\n"
        "def f():\n    from dopl_core.studies.model.roster import Arm\n    import streamlit\n"
    )
    assert imports(file) == {
        "dopl_core.studies.store.tables",
        "dopl_core.experiments.sweep",
        "dopl_core.studies.model.roster",
        "streamlit",
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_no_sql_and_no_maths(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "sqlalchemy" not in text
    assert "numpy" not in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_imports_studies_through_the_interface_only(path: Path) -> None:
    inside = {name for name in imports(path) if name.startswith("dopl_core.studies.")}
    assert inside <= {"dopl_core.studies.access"}


# What these benchmarks measure or prepare has no place in the interface.
MEASURED_INSIDE = {
    "living.py": {"dopl_core.studies.model.log_values", "dopl_core.studies.replay.known_states"},
    "studies.py": {
        "dopl_core.studies.store.blobs",
        "dopl_core.studies.store.tables",
        "dopl_core.studies.store.transaction",
    },
}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "benchmarks").glob("*.py")), ids=lambda path: path.name
)
def test_a_benchmark_imports_studies_through_the_interface(path: Path) -> None:
    inside = {name for name in imports(path) if name.startswith("dopl_core.studies.")}
    allowed = {"dopl_core.studies.access"} | MEASURED_INSIDE.get(path.name, set())
    assert inside <= allowed
