"""The audit trail: who looked, changed or was refused; in the same transaction; never the data."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from playing import ROSTER, Clock, clinic, cpap

from dopl_core import cli, studies
from dopl_core.studies import (
    ALL_STUDIES,
    COMMAND_LINE,
    Actor,
    Arm,
    RefusedError,
    Role,
    Store,
    StoreError,
    StudyError,
    access,
    audit,
)

DAY = 24 * 3600


def rows(store: Store, study: str = ALL_STUDIES) -> list[tuple[str, str, str, bool]]:
    """Who, act, about, refused; oldest first."""
    found = studies.read_audit(store, study)
    return [(one.who, one.act, one.about, one.refused) for one in reversed(found)]


def bound(store: Store, study: str, role: Role) -> Store:
    return store.acting_as(Actor("Ann", "signed in", {study: frozenset([role])}))


def test_a_change_is_recorded_with_who_when_and_what(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, clinic())
    ann = bound(store, study, "owner")
    studies.change_settings(ann, study, budget=1, noun="patient")
    studies.add_member(ann, study, "bo@clinic.example", "reader")
    studies.join(ann, study, [Arm("p9", "Eve", "ward", "Low")])
    assert rows(store, study) == [
        ("Ann (signed in)", "settings changed", "budget, noun", False),
        ("Ann (signed in)", "role changed", "email bo@clinic.example is reader", False),
        ("Ann (signed in)", "people joined", "1 people", False),
    ]
    assert {one.at for one in studies.read_audit(store, study)} == {store.now()}


def test_a_change_that_fails_is_not_recorded(store: Store) -> None:
    study = studies.create_study(store, clinic())
    ann = bound(store, study, "owner")
    with pytest.raises(StudyError):
        studies.change_settings(ann, study, budget=10**9)
    with pytest.raises(StudyError):
        studies.observe(ann, study, {"p1": "Low"}, week=7)
    studies.pause_study(store, study)  # nobody is named: a program
    assert rows(store) == []


def test_a_change_that_cannot_be_recorded_is_undone(store: Store) -> None:
    study = studies.create_study(store, clinic())
    with store.write() as connection:
        connection.execute(sa.text("ALTER TABLE audit RENAME TO away"))
    with pytest.raises(StoreError):
        studies.pause_study(store.acting_as(COMMAND_LINE), study)
    assert studies.get_study(store, study).status == "running"
    with pytest.raises(StoreError):  # nor is anything shown
        studies.read_lists(store.acting_as(COMMAND_LINE), study)


def test_a_look_is_recorded_once_in_some_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.create_study(store, clinic())
    ann, owner = bound(store, study, "reader"), store.acting_as(COMMAND_LINE)
    for _ in range(3):
        studies.read_lists(ann, study)
    studies.read_lists(owner, study)
    first = [("Ann (signed in)", "list", "week 1", False)]
    first += [("Owner (command line)", "list", "week 1", False)]
    assert rows(store) == first
    monkeypatch.setattr(audit, "AGAIN_SECONDS", 0.0)
    studies.read_lists(ann, study)
    assert rows(store) == [*first, first[0]]


def test_refused_tries_are_recorded(store: Store) -> None:
    study = studies.create_study(store, cpap())
    reader = bound(store, study, "reader")
    for _ in range(2):
        with pytest.raises(RefusedError):
            studies.export_bundle(reader, study)
    access.make_owner_key(store)
    assert access.begin_session(store, "wrong", "clinic.example") is None
    claims = {"email": "eve@x.example"}
    assert access.begin_member_session(store, "Eve", claims, "clinic.example") is None
    token = access.invite(store, study, "Ann")
    access.revoke(store, study, "Ann")
    access.refuse_link(store, token, "duels")
    access.refuse_link(store, "made-up", "list")
    assert rows(store) == [
        ("Ann (signed in)", "export", "", True),
        ("Somebody", "sign-in", "wrong key", True),
        ("Eve", "sign-in", "no role", True),
        ("Somebody (link)", "link", "link to comparisons: revoked", True),
        ("Somebody (link)", "link", "link to the list: unknown", True),
    ]


def test_sign_in_is_recorded(store: Store) -> None:
    key = access.make_owner_key(store)
    assert access.begin_session(store, key, "clinic.example")
    studies.add_member(store, ALL_STUDIES, "ann@x.example", "reader")
    for name in ("Ann", "Owner"):
        assert access.begin_member_session(store, name, {"email": "ann@x.example"}, "x.example")
    who = ["Owner (key)", "Ann (signed in)", "Owner (member) (signed in)"]
    assert rows(store) == [(one, "sign-in", "", False) for one in who]


def test_the_trail_never_has_the_data(sqlite_store: Store) -> None:
    """Everything that an owner does with people, and no name, id or fact of theirs in the trail."""
    store = sqlite_store
    owner = store.acting_as(COMMAND_LINE)
    study = studies.create_study(owner, clinic(horizon=1))
    link = Actor("Zoe", "link", {study: frozenset(["annotator"])})
    with pytest.raises(RefusedError):
        studies.read_lists(store.acting_as(link), study)
    for look in (
        *(studies.read_lists, studies.epoch_list, studies.coming_config, studies.present_states),
        *(studies.read_cards, studies.flags, studies.participants, studies.answers),
        *(studies.export_bundle, studies.assessment.assess, studies.report_config),
    ):
        look(owner, study)
    studies.explain(owner, study, "p1")
    studies.read_week(owner, study, 0)
    off = studies.read_lists(owner, study)[0].listed[0].id
    studies.change_list(owner, study, remove=[off], because="Ada is away")
    studies.observe(owner, study, dict.fromkeys(("p1", "p2", "p3", "p4"), "Low"), helped=["p1"])
    studies.correct(owner, study, 1, {"p1": "High"})
    studies.undo_report(owner, study, 1)
    studies.leave(owner, study, ["p2"])
    access.invite(owner, study, "Zoe")
    studies.download(owner, study, f"{study}-week-1.csv")
    studies.print_list(owner, study, 1)
    text = str([tuple(vars(one).values()) for one in studies.read_audit(store, ALL_STUDIES)])
    cells = [cell for line in ROSTER.decode().splitlines()[1:] for cell in line.split(",")]
    personal = {"Zoe", "away", *(cell for cell in cells if not cell.isdecimal())}
    assert [word for word in personal if re.search(rf"\b{word}\b", text)] == []
    assert {act for _, act, _, _ in rows(store)} >= {
        *("list", "people", "cards", "flags", "participants", "answers", "insights", "report"),
        *("export", "download", "print", "link made", "people left", "report corrected"),
        *("report sent", "report undone", "list changed", "study made"),
        *("reasons for a place on the list",),
    }


def test_old_rows_are_forgotten_and_the_time_to_keep_is_remembered(
    store: Store, clock: Clock
) -> None:
    assert studies.audit_days(store) == 3 * 365
    study = studies.create_study(store, cpap())
    owner = store.acting_as(COMMAND_LINE)
    studies.keep_audit(owner, 30)
    studies.pause_study(owner, study)
    clock.wait(20 * DAY)
    studies.reopen_study(owner, study)
    assert studies.forget_audit(store) == 0
    clock.wait(11 * DAY)
    assert studies.forget_audit(store) == 1
    assert [act for _, act, _, _ in rows(store)] == [
        "time to keep the audit trail",
        "study reopened",
    ]
    clock.wait(20 * DAY)
    assert studies.forget_audit(store, store.now()) == 1
    assert studies.audit_days(store) == 30
    with pytest.raises(StudyError, match="1 to 36500 days, not 0"):
        studies.keep_audit(owner, 0)


def test_rows_outlive_their_study(store: Store) -> None:
    study = studies.create_study(store, cpap())
    studies.delete_study(store.acting_as(COMMAND_LINE), study)
    assert rows(store, study) == [("Owner (command line)", "study deleted", "", False)]


def test_commands_are_recorded_and_print_the_trail(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    study = studies.create_study(sqlite_store, clinic())
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{sqlite_store.name}")
    cli.main(["list", study])
    cli.main(["member", study, "--add", "ann@x.example", "--role", "coordinator"])
    cli.main(["member", "--all", "--add", "nurses", "--claim", "groups", "--role", "reader"])
    cli.main(["member", study, "--remove", "ann@x.example"])
    capsys.readouterr()
    cli.main(["member", "--all"])
    assert capsys.readouterr().out == "reader  groups  nurses\n"
    cli.main(["audit", study])
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "time,study,who,act,about,refused"
    cells = [line.split(",")[1:] for line in reversed(lines)]
    assert [cell[2:4] for cell in cells] == [
        ["list", "week 1"],
        ["role changed", "email ann@x.example is coordinator"],
        ["role changed", "email ann@x.example has no role"],
    ]
    assert {(cell[0], cell[1]) for cell in cells} == {(study, "Owner (command line)")}
    cli.main(["audit", "--all", "--keep-days", "99"])
    cli.main(["audit", "--all", "--csv", str(tmp_path / "audit.csv")])
    assert "99 days" in (tmp_path / "audit.csv").read_text(encoding="utf-8-sig")
    assert studies.audit_days(sqlite_store) == 99


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["member"], "name a study, or all studies with --all"),
        (["audit", "x", "--all"], "name a study, or all studies with --all"),
        (["member", "--all", "--add", "a@x.example"], "which role?"),
        (["member", "--all", "--remove", "a@x.example"], "email a@x.example has no role"),
        (["audit", "nope", "--keep-days", "9"], "holds for all studies"),
    ],
)
def test_commands_say_what_is_missing(
    sqlite_store: Store,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    why: str,
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{sqlite_store.name}")
    with pytest.raises(SystemExit, match=re.escape(why)):
        cli.main(words)
