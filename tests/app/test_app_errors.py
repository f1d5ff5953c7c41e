"""Errors after a click are shown as sentences, and nobody sees a traceback."""

from pathlib import Path

import pytest
from page_words import words

from dopl_core import studies
from dopl_core.experiments import background as simulations
from dopl_core.studies import access
from pages.shared import errors

ERRORS = {
    "the disk is full": studies.StoreError("the disk is full"),
    "run.json: No such file": FileNotFoundError(2, "No such file", "/secret/place/run.json"),
    errors.UNEXPECTED: KeyError("study"),
}


def broken(monkeypatch, module, name: str, error: Exception) -> None:
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(module, name, fail)


def click(app, start: str):
    [button] = [b for b in app.button if b.key and b.key.startswith(start)]
    return button.click().run()


def is_said(app, say: str) -> bool:
    assert not app.exception
    assert "/secret/place" not in words(app)
    return say in words(app).replace("\\", "").replace("\u2060", "")


@pytest.mark.parametrize("say", ERRORS)
@pytest.mark.parametrize(
    ("does", "key"),
    [("answer", "left-"), ("answer", "skip-"), ("undo", "undo-"), ("skip_practice", "skip-prac")],
)
def test_an_error_while_answering_is_shown_and_the_comparison_stays(
    visit, store, monkeypatch, does, key, say
):
    practice = does == "skip_practice"
    study = studies.create_study(store, studies.from_environment("cpap", practice=practice))
    app = visit("annotate", study=study)
    if does == "undo":
        click(app, "left-")
    before = [b.key for b in app.button]
    broken(monkeypatch, studies, does, ERRORS[say])
    if key == "skip-":
        key = next(k for k in before if k.startswith("skip-"))
    click(app, key)
    assert is_said(app, say)
    assert [b.key for b in app.button] == before


def test_an_error_disappears_when_the_next_click_succeeds(visit, store, study, monkeypatch):
    app = visit("annotate", study=study)
    with monkeypatch.context() as while_full:
        broken(while_full, studies, "answer", studies.StoreError("the disk is full"))
        click(app, "left-")
    assert is_said(app, "the disk is full")
    click(app, "left-")
    assert not is_said(app, "the disk is full")
    assert is_said(app, "Saved.")


def test_only_the_owner_and_the_log_see_errors_of_the_database(
    visit, store, study, monkeypatch, come_in, caplog
):
    secret = "postgresql://dopl@db.clinic.example/dopl: connection refused"
    token = access.invite(store, study, "Ann")
    come_in()
    app = visit("annotate", invite=token)
    click(app, "begin")
    click(app, "left-")
    assert is_said(app, "Saved.")
    broken(monkeypatch, studies, "answer", studies.StoreError(secret))
    click(app, "left-")
    assert is_said(app, f"Not saved. {errors.DOWN}")
    assert "Saved." not in [text.value for text in app.text]
    assert "clinic.example" not in words(app)
    assert secret in caplog.text


def test_while_the_database_is_down_the_comparison_stays_on_the_page(
    visit, store, study, monkeypatch, come_in
):
    token = access.invite(store, study, "Ann")
    come_in()
    app = visit("annotate", invite=token)
    click(app, "begin")
    before = [b.key for b in app.button]
    with monkeypatch.context() as while_down:
        for module, name in (
            (studies, "answer"),
            (studies, "next_duel"),
            (studies, "get_study"),
            (access, "find_invite"),
        ):
            broken(while_down, module, name, studies.StoreError("down"))
        click(app, "left-")
        assert is_said(app, "Not saved.")
        assert is_said(app, "This page continues by itself")
        assert [b.key for b in app.button] == before
    click(app, "left-")
    assert is_said(app, "Saved.")
    assert studies.get_study(store, study).answers == 1


def test_an_error_stays_for_some_seconds_on_a_page_that_refreshes(visit, study, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(errors.time, "monotonic", lambda: now)
    app = visit("annotate", study=study)
    broken(monkeypatch, studies, "answer", studies.StoreError("the disk is full"))
    click(app, "left-")
    now += errors.SECONDS / 2
    assert is_said(app.run(), "the disk is full")
    now += errors.SECONDS
    assert not is_said(app.run(), "the disk is full")


def test_an_undo_that_failed_can_be_tried_again(visit, store, study, monkeypatch):
    app = visit("annotate", study=study)
    click(app, "left-")
    with monkeypatch.context() as while_full:
        broken(while_full, studies, "undo", studies.StoreError("the disk is full"))
        click(app, "undo-")
    click(app, "undo-")
    assert is_said(app, "Undone.")


@pytest.mark.parametrize("say", ERRORS)
@pytest.mark.parametrize(
    ("does", "key"),
    [
        ("pause_study", "pause"),
        ("close_study", "close"),
        ("reopen_study", "reopen"),
        ("close_duels", "go-on"),
    ],
)
def test_an_error_while_changing_a_studys_status_is_shown(
    visit, store, study, monkeypatch, does, key, say
):
    ask = studies.next_duel(store, study, "Ann")
    studies.answer(store, ask.impression, "left", response_ms=800)
    if does == "reopen_study":
        studies.pause_study(store, study)
    before = studies.get_study(store, study)
    broken(monkeypatch, studies, does, ERRORS[say])
    app = visit("studies", study=study)
    click(app, key)
    assert is_said(app, say)
    assert studies.get_study(store, study) == before


@pytest.mark.parametrize("say", ERRORS)
def test_an_error_while_revoking_a_link_is_shown(visit, store, study, monkeypatch, say):
    token = access.invite(store, study, "Ann")
    broken(monkeypatch, access, "revoke", ERRORS[say])
    app = visit("studies", study=study)
    click(app, "revoke-duels-Ann")
    assert is_said(app, say)
    assert access.find_invite(store, token) is not None


@pytest.mark.parametrize("say", ERRORS)
@pytest.mark.parametrize(
    ("does", "status"), [("stop", "running"), ("go_on", "stopped"), ("delete", "finished")]
)
def test_an_error_of_a_simulation_is_shown(visit, monkeypatch, tmp_path, does, status, say):
    settings = simulations.Settings("cpap", ("dopl",), "calibrated", 60, 5, 3)
    found = simulations.Simulation("one", Path(tmp_path), settings, status, 0, 180, None, "")
    monkeypatch.setattr(simulations, "find_all", lambda: [found])
    monkeypatch.setattr(simulations, "find", lambda name: found)
    broken(monkeypatch, simulations, does, ERRORS[say])
    app = visit("simulate")
    click(app, {"stop": "stop-", "go_on": "on-", "delete": "del-"}[does])
    assert is_said(app, say)


def test_an_unexpected_error_is_logged_with_its_traceback(visit, study, monkeypatch, caplog):
    broken(monkeypatch, studies, "pause_study", KeyError("study"))
    click(visit("studies", study=study), "pause")
    [record] = [r for r in caplog.records if r.name == "pages.shared.errors"]
    assert record.exc_info[0] is KeyError
