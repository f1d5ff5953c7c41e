"""The columns of an owner's files are remembered for the next file."""

from playing import clinic

from dopl_core import studies
from dopl_core.studies import Columns, Store

FILE = b"Bett,Jetzt,Anruf,wach\np1,High,1,x\np2,Low,0,y\n"
CHOSEN = Columns("Bett", "Jetzt", helped="Anruf", shown=("wach",))


def test_chosen_columns_are_remembered_for_files_that_have_them(store: Store) -> None:
    study = studies.create_study(store, clinic())
    sheet = studies.open_sheet(FILE)
    assert studies.remembered_columns(store, study, "report", sheet) is None
    studies.remember_columns(store, study, "report", Columns("wach", "Jetzt"))
    studies.remember_columns(store, study, "report", CHOSEN)
    assert studies.remembered_columns(store, study, "report", sheet) == CHOSEN
    assert studies.remembered_columns(store, study, "roster", sheet) is None
    other = studies.open_sheet(b"id,state\np1,High\n")
    assert studies.remembered_columns(store, study, "report", other) is None
    studies.delete_study(store, study)
    assert studies.remembered_columns(store, study, "report", sheet) is None


def test_a_report_may_have_the_columns_of_the_roster(store: Store) -> None:
    study = studies.create_study(store, clinic())
    studies.remember_columns(store, study, "roster", Columns("Bett", "Jetzt", "Name", shown=("x",)))
    guessed = Columns("Bett", "Jetzt", helped="helped")
    sheet = studies.open_sheet(b"Bett,Jetzt,helped\np1,High,1\n")
    assert studies.remembered_columns(store, study, "report", sheet) == guessed
    assert studies.remembered_columns(store, study, "roster", sheet) is None
    other = studies.open_sheet(b"id,Jetzt\np1,High\n")
    assert studies.remembered_columns(store, study, "report", other) is None
