"""Places that are drawn by lot: on lists, in bundles, and the same when it is played again."""

import csv
import io
import zipfile

import pytest
from playing import Clock, clinic, cpap, play

from dopl_core.studies import archive, lists, service
from dopl_core.studies.service import Store, StudyError


def transitions(content: bytes) -> list[dict[str, str]]:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        text = bundle.read("transitions.csv").decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_place_by_lot_is_on_the_list_last_and_says_so(store: Store) -> None:
    config = clinic(horizon=1, confidence="calibrated", budget=3, by_lot=1)
    study = service.create_study(store, config)
    [week] = service.read_lists(store, study)
    assert [one.by_lot for one in week.listed] == [False, False, True]
    assert not week.listed[-1].equal
    assert lists.why(week.listed[-1], week).startswith("By lot: ")
    assert [row[lists.LIST_COLUMNS.index("by_lot")] for row in lists.list_rows(week)] == [0, 0, 1]


@pytest.mark.parametrize("make", [cpap, clinic])
def test_lots_are_kept_exported_and_drawn_again_to_the_bit(
    store: Store, clock: Clock, make: object
) -> None:
    study = service.create_study(store, make(budget=3, by_lot=2))  # type: ignore[operator]
    play(store, study, 30, clock=clock)
    kept = [move.by_lot.tolist() for move in archive.read(store, study).moves]
    assert all(len(lots) == 2 for lots in kept)
    service.replay_study(store, study)
    exported = service.export_bundle(store, study)
    assert sum(row["by_lot"] == "1" for row in transitions(exported)) == 2 * len(kept)
    service.delete_study(store, study)
    service.import_bundle(store, exported)
    assert [move.by_lot.tolist() for move in archive.read(store, study).moves] == kept
    assert service.export_bundle(store, study) == exported


def test_lots_are_fewer_than_the_budget(store: Store) -> None:
    with pytest.raises(StudyError, match="by_lot is 2: fewer needed than the budget, which is 2"):
        clinic(by_lot=2)
    study = service.create_study(store, clinic(budget=3, by_lot=2, horizon=1))
    with pytest.raises(StudyError, match="fewer needed than the budget"):
        service.change_settings(store, study, budget=2)
    service.change_settings(store, study, budget=2, by_lot=1)
