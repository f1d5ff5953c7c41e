"""Who is asked for how many answers."""

import pytest

from dopl_core import cli, studies
from dopl_core.studies import Store, access


def with_links(store: Store, **rules: int) -> str:
    """A round of 21 answers (7 in each of 3 weeks); Ann and Bo have links, Cas has lost hers."""
    config = studies.from_environment("cpap", practice=False, horizon=3, repeat_every=0, **rules)
    made = studies.create_study(store, config)
    for name in ("Ann", "Bo", "Cas"):
        access.invite(store, made, name)
    access.invite(store, made, "Reader", "list")
    access.revoke(store, made, "Cas")
    return made


@pytest.fixture
def study(store: Store) -> str:
    return with_links(store)


def answer(store: Store, study: str, name: str, times: int, participant: str = "") -> None:
    for _ in range(times):
        found = studies.next_duel(store, study, name, participant)
        assert isinstance(found, studies.Ask)
        studies.answer(store, found.impression, "left", too_fast_ms=0)


def test_missing_answers_are_shared_and_who_gave_most_is_asked_least(
    store: Store, study: str
) -> None:
    assert studies.due(store, study) == [studies.Due("Ann", 0, 11), studies.Due("Bo", 0, 10)]
    answer(store, study, "Ann", 7)
    answer(store, study, "Panel", 2, participant="5f3a")
    assert studies.due(store, study) == [studies.Due("Ann", 7, 3), studies.Due("Bo", 0, 9)]


def test_nobody_is_asked_beyond_the_quota_or_while_the_study_rests(store: Store) -> None:
    study = with_links(store, quota=8)
    answer(store, study, "Ann", 7)
    assert studies.due_rows(studies.due(store, study)) == [("Ann", 7, 1), ("Bo", 0, 8)]
    studies.pause_study(store, study)
    assert studies.due_rows(studies.due(store, study)) == []


def test_links_of_panels_are_left_out(store: Store, study: str) -> None:
    access.invite(store, study, "Panel")
    answer(store, study, "Panel", 1, participant="5f3a")
    assert [one.link for one in studies.due(store, study)] == ["Ann", "Bo"]


def test_dopl_due_prints_names_and_no_tokens(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/studies.db")
    store = studies.open_store()
    study = studies.create_study(store, studies.from_environment("cpap", horizon=1))
    cli.main(["due", study])
    told = capsys.readouterr()
    assert told.out.split() == ["link,given,asked"]
    assert "nobody with a link is asked" in told.err
    token = access.invite(store, study, "Ann\N{LATIN SMALL LETTER E WITH ACUTE}")
    cli.main(["due", study])
    told = capsys.readouterr()
    assert told.out.split() == ["link,given,asked", "Anné,0,7"]
    assert token not in told.out + told.err
    store.close()
