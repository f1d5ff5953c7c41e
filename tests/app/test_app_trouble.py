"""What goes wrong when a button is clicked is said in words, and nobody sees a crash."""

from pathlib import Path

import pytest
from page_words import words

from dopl_core.experiments import background as simulations
from dopl_core.studies import access, service
from pages import _trouble

ERRORS = {
    "the disk is full": service.StoreError("the disk is full"),
    "run.json: No such file": FileNotFoundError(2, "No such file", "/secret/place/run.json"),
    _trouble.UNEXPECTED: KeyError("study"),
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
def test_trouble_while_answering_is_said_and_the_duel_stays(
    visit, store, monkeypatch, does, key, say
):
    practice = does == "skip_practice"
    study = service.create_study(store, service.from_environment("cpap", practice=practice))
    app = visit("annotate", study=study)
    if does == "undo":
        click(app, "left-")
    before = [b.key for b in app.button]
    broken(monkeypatch, service, does, ERRORS[say])
    if key == "skip-":
        key = next(k for k in before if k.startswith("skip-"))
    click(app, key)
    assert is_said(app, say)
    assert [b.key for b in app.button] == before


def test_trouble_is_gone_when_the_next_click_succeeds(visit, store, study, monkeypatch):
    app = visit("annotate", study=study)
    with monkeypatch.context() as while_full:
        broken(while_full, service, "answer", service.StoreError("the disk is full"))
        click(app, "left-")
    assert is_said(app, "the disk is full")
    click(app, "left-")
    assert not is_said(app, "the disk is full")
    assert is_said(app, "Saved.")


def test_what_is_wrong_with_the_database_is_for_the_owner_and_the_log(
    visit, store, study, monkeypatch, come_in, caplog
):
    secret = "postgresql://dopl@db.clinic.example/dopl: connection refused"
    token = access.invite(store, study, "Ann")
    come_in()
    app = visit("annotate", invite=token)
    click(app, "begin")
    click(app, "left-")
    assert is_said(app, "Saved.")
    broken(monkeypatch, service, "answer", service.StoreError(secret))
    click(app, "left-")
    assert is_said(app, f"Not saved. {_trouble.DOWN}")
    assert "Saved." not in [text.value for text in app.text]
    assert "clinic.example" not in words(app)
    assert secret in caplog.text


def test_without_the_database_the_duel_stays_on_the_page(visit, store, study, monkeypatch, come_in):
    token = access.invite(store, study, "Ann")
    come_in()
    app = visit("annotate", invite=token)
    click(app, "begin")
    before = [b.key for b in app.button]
    with monkeypatch.context() as while_down:
        for module, name in (
            (service, "answer"),
            (service, "next_duel"),
            (service, "get_study"),
            (access, "who"),
        ):
            broken(while_down, module, name, service.StoreError("down"))
        click(app, "left-")
        assert is_said(app, "Not saved.")
        assert is_said(app, "this page goes on by itself")
        assert [b.key for b in app.button] == before
    click(app, "left-")
    assert is_said(app, "Saved.")
    assert service.get_study(store, study).answers == 1


def test_trouble_stays_for_some_seconds_on_a_page_that_draws_itself_anew(visit, study, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(_trouble.time, "monotonic", lambda: now)
    app = visit("annotate", study=study)
    broken(monkeypatch, service, "answer", service.StoreError("the disk is full"))
    click(app, "left-")
    now += _trouble.SECONDS / 2
    assert is_said(app.run(), "the disk is full")
    now += _trouble.SECONDS
    assert not is_said(app.run(), "the disk is full")


def test_an_undo_that_failed_can_be_tried_again(visit, store, study, monkeypatch):
    app = visit("annotate", study=study)
    click(app, "left-")
    with monkeypatch.context() as while_full:
        broken(while_full, service, "undo", service.StoreError("the disk is full"))
        click(app, "undo-")
    click(app, "undo-")
    assert is_said(app, "Taken back.")


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
def test_trouble_with_a_studys_state_is_said(visit, store, study, monkeypatch, does, key, say):
    ask = service.next_duel(store, study, "Ann")
    service.answer(store, ask.impression, "left", response_ms=800)
    if does == "reopen_study":
        service.pause_study(store, study)
    before = service.get_study(store, study)
    broken(monkeypatch, service, does, ERRORS[say])
    app = visit("studies", study=study)
    click(app, key)
    assert is_said(app, say)
    assert service.get_study(store, study) == before


@pytest.mark.parametrize("say", ERRORS)
def test_trouble_with_revoking_is_said(visit, store, study, monkeypatch, say):
    token = access.invite(store, study, "Ann")
    broken(monkeypatch, access, "revoke", ERRORS[say])
    app = visit("studies", study=study)
    click(app, "revoke-duels-Ann")
    assert is_said(app, say)
    assert access.who(store, token) is not None


@pytest.mark.parametrize("say", ERRORS)
@pytest.mark.parametrize(
    ("does", "status"), [("stop", "running"), ("go_on", "stopped"), ("delete", "finished")]
)
def test_trouble_with_a_simulation_is_said(visit, monkeypatch, tmp_path, does, status, say):
    settings = simulations.Settings("cpap", ("dopl",), "calibrated", 60, 5, 3)
    found = simulations.Simulation("one", Path(tmp_path), settings, status, 0, 180, None, "")
    monkeypatch.setattr(simulations, "find_all", lambda: [found])
    monkeypatch.setattr(simulations, "find", lambda name: found)
    broken(monkeypatch, simulations, does, ERRORS[say])
    app = visit("simulate")
    click(app, {"stop": "stop-", "go_on": "on-", "delete": "del-"}[does])
    assert is_said(app, say)


def test_what_nobody_expected_is_in_the_log_with_its_traceback(visit, study, monkeypatch, caplog):
    broken(monkeypatch, service, "pause_study", KeyError("study"))
    click(visit("studies", study=study), "pause")
    [record] = [r for r in caplog.records if r.name == "pages._trouble"]
    assert record.exc_info[0] is KeyError
