"""The codebook knows every column of every table of a bundle, and lists.csv is true."""

import csv
import io
import zipfile
from dataclasses import fields

from playing import clinic

from dopl_core import studies
from dopl_core.studies import Store
from dopl_core.studies.exchange import codebook


def tables(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        names = [name for name in bundle.namelist() if name.endswith((".csv", ".md"))]
        return {name: bundle.read(name).decode() for name in names}


def test_every_column_of_every_table_is_in_the_codebook(sqlite_store: Store) -> None:
    found = tables(
        studies.export_bundle(sqlite_store, studies.create_study(sqlite_store, clinic()))
    )
    parts = found.pop("codebook.md").split("\n## ")
    assert len(found) == 8
    for name, content in found.items():
        [part] = [one for one in parts if one.startswith(name)]
        for column in content.splitlines()[0].split(","):
            assert f"- `{column}`: " in part, (name, column)


def test_every_setting_and_every_other_field_of_a_configuration_is_in_the_codebook() -> None:
    text = codebook.text()
    for name, setting in studies.SETTINGS.items():
        assert f"- `{name}`: {setting.about.label}. {setting.about.help} Value: " in text
    names = {field.name for field in fields(studies.StudyConfig)}
    assert names == {*studies.SETTINGS, *codebook.FIXED}


def test_lists_have_who_was_listed_drawn_and_really_helped(sqlite_store: Store) -> None:
    store = sqlite_store
    config = clinic(horizon=1, confidence="calibrated", budget=2, by_lot=1)
    study = studies.create_study(store, config)
    [week] = studies.read_lists(store, study)
    listed, [waiting] = [one.id for one in week.listed], [one.id for one in week.left_out]
    [other] = {"p1", "p2", "p3", "p4"} - {*listed, waiting}
    states = dict.fromkeys(studies.present_states(store, study), "Low")
    studies.observe(store, study, states, helped=[listed[0], other])
    studies.advance(store, study)
    text = tables(studies.export_bundle(store, study))["lists.csv"]
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    first = {row["arm"]: row for row in rows if row["week"] == "1"}
    assert [first[listed[0]][mark] for mark in ("listed", "by_lot", "helped")] == ["1", "0", "1"]
    assert [first[listed[1]][mark] for mark in ("listed", "by_lot", "helped")] == ["1", "1", "0"]
    assert first[listed[1]]["why"].startswith("Chosen at random")
    assert [first[waiting][mark] for mark in ("listed", "by_lot", "helped")] == ["0", "1", "0"]
    assert first[waiting]["why"].startswith("Chosen at random to wait this week")
    assert [first[other][mark] for mark in ("listed", "by_lot", "helped")] == ["0", "0", "1"]
    assert {row["helped"] for row in rows if row["week"] == "2"} == {""}
