"""The analysis that a protocol promised: at its looks only, exported, and computed again."""

import hashlib
import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from bundles import OURS, files, zipped
from playing import cohort, report_from, trial

from dopl_core import studies
from dopl_core.learning.bandit import UNKNOWN
from dopl_core.learning.places import lot_trial
from dopl_core.studies import Arm, Store, trial_text
from dopl_core.studies.exchange import (
    codebook,
    trial_analysis,
    trial_deviations,
    trial_files,
)
from dopl_core.studies.model.study_log import StudyLog
from dopl_core.studies.store.log_reader import read_log

STATES = ("Low", "Moderate", "High")
RULES = {"horizon": 1, "confidence": "paper", "engine": "lagrangian", "budget": 4, "by_lot": 2}


def begun(store: Store, **rules: object) -> str:
    """A trial of twelve people for six weeks, with looks after the third and the last."""
    config = cohort(12, STATES, 5, **(RULES | rules))
    promised = trial(config, weeks=6, looks=(3, 6))
    return studies.create_study(store, config, protocol=promised)


def live(store: Store, study: str, weeks: int, seed: int = 0) -> None:
    """Report some weeks."""
    rng = np.random.default_rng(seed)
    for _ in range(weeks):
        report_from(store, study, rng)
        studies.advance(store, study)


def test_no_effect_is_computed_before_a_look_and_none_but_the_looks_afterwards(
    sqlite_store: Store,
) -> None:
    study = begun(sqlite_store)
    seen = []
    for _ in range(7):
        found = studies.trial_analysis(sqlite_store, study)
        assert found is not None
        seen.append(([look.week for look in found.looks], found.next_look, found.weeks))
        title, basis = trial_text.headline(found)
        assert ("100" in " ".join(basis)) == bool(found.looks)
        assert "first look at the trial is after week 3" in title or found.looks
        live(sqlite_store, study, 1, seed=found.weeks)
    assert seen == [
        *([([], 3, week) for week in range(3)]),
        *([([3], 6, week) for week in range(3, 6)]),
        ([3, 6], None, 6),
    ]
    again = studies.trial_analysis(sqlite_store, study)
    assert again is not None
    assert (again.looks, again.weeks) == (found.looks, 6)  # a seventh week does not count
    assert studies.trial_analysis(sqlite_store, studies.create_study(sqlite_store, cpap())) is None


def cpap() -> studies.StudyConfig:
    return studies.from_environment("cpap", horizon=1, practice=False)


def test_lotteries_are_those_of_the_people_who_could_be_drawn_then(sqlite_store: Store) -> None:
    study = begun(sqlite_store, once_in=2)
    live(sqlite_store, study, 1)
    studies.join(sqlite_store, study, [Arm("new", "New", "", "Low")])
    studies.leave(sqlite_store, study, ["p0"])
    live(sqlite_store, study, 1)
    studies.change_settings(sqlite_store, study, once_in=0)
    live(sqlite_store, study, 2, seed=1)
    log = read_log(sqlite_store, study)
    found = trial_analysis._trial_weeks(log, 6)
    for week, epoch in enumerate(found.epochs):
        could = set(range(12)) if week < 2 else set(range(1, 13))  # one joined, one left
        if week in (1, 2):  # nobody was helped twice in a row until the rule was changed
            could -= set(found.epochs[week - 1].acted.tolist())
        weeks = found.weeks
        assert weeks.barred is not None
        assert set(np.flatnonzero(~weeks.barred[week])) == could, week
        assert set(epoch.by_lot.tolist()) <= could
    text = studies.trial_analysis(sqlite_store, study)
    assert text is not None
    assert any("once_in changed in week 4" in one for one in text.deviations)
    flow = {row.what: (row.people, row.person_weeks) for row in text.flow}
    assert flow["joined later"] == (1, 2)
    assert flow["left"][0] == 1


def departed(store: Store) -> str:
    """A trial in which the owner departs from the protocol in every way."""
    study = begun(store)
    live(store, study, 1)
    epoch = read_log(store, study).epochs[-1]
    config = studies.get_study(store, study).config
    ids = [arm.id for arm in config.arms]
    studies.change_list(store, study, remove=[ids[epoch.drawn[0]]], because="away")
    live(store, study, 1, seed=1)
    states = studies.present_states(store, study)
    epoch = read_log(store, study).epochs[-1]
    helped = [ids[arm] for arm in (*epoch.arms, epoch.left_out[0])]
    studies.observe(store, study, states | {ids[3]: None}, helped=helped)
    studies.advance(store, study)
    studies.undo_report(store, study, 3)
    studies.observe(store, study, states | {ids[3]: None}, helped=helped)
    studies.advance(store, study)
    studies.correct(store, study, 1, {ids[5]: "High" if states[ids[5]] != "High" else "Low"})
    studies.change_settings(store, study, budget=3, by_lot=1)
    live(store, study, 3, seed=2)
    return study


def test_deviations_and_flow_are_told_and_the_export_is_computed_again(sqlite_store: Store) -> None:
    study = departed(sqlite_store)
    found = studies.trial_analysis(sqlite_store, study)
    assert found is not None
    said = " ".join(found.deviations)
    assert "The list did not have 4 places in weeks 5 and 6." in said
    assert "Not 2 places were drawn at random in weeks 5 and 6." in said
    assert "taken off, 1 of 10 drawn for a place; put on, 0 of 10 drawn to wait" in said
    assert "not helped, 1 of 10 drawn for a place; helped, 1 of 10 drawn to wait" in said
    assert "not helped, 0 of 12 on the list; helped, 1 off the list" in said
    assert "Reports undone and made again: 1." in said
    assert "Corrections of reports: 1." in said
    flow = {row.what: (row.people, row.person_weeks) for row in found.flow}
    assert flow["on the roster when the trial began"] == (12, 72)
    assert flow["drawn to wait"][1] == flow["drawn for a place"][1] == 10
    assert flow["state unknown before or after"] == (1, 2)
    assert flow["analysed: could be drawn, and both states known"][1] == 70
    look = found.looks[-1]
    assert (look.drawn, look.waiting) == (10, 10)

    bundle = studies.export_bundle(sqlite_store, study)
    members = files(bundle)
    assert hashlib.sha256(members["protocol.json"]).hexdigest() == found.digest
    results = json.loads(members["analysis.json"])
    assert results["protocol"] == found.digest
    assert results["looks"][1]["effect"]["effect"] == pytest.approx(look.effect.effect, abs=1e-6)
    for name in results:
        assert name == "study" or name in codebook.ANALYSIS
    assert {f"looks.{name}" for name in results["looks"][0]} <= codebook.ANALYSIS.keys()
    methods = members["methods.md"].decode()
    for words in (found.digest, results["source"], "| drawn to wait |", *found.deviations):
        assert words in methods
    bare = files(studies.export_bundle(sqlite_store, study, without_names=True))
    assert json.loads(bare["analysis.json"]) == results
    assert bare["methods.md"] == members["methods.md"]

    how: list[str] = []
    studies.replay_bundle(bundle, how.append)
    studies.replay_bundle(zipped(bare), how.append)
    assert all(one.endswith("The promised analysis is as in analysis.json.") for one in how)
    check_tampering(read_log(sqlite_store, study), members)


def check_tampering(log: StudyLog, members: dict[str, bytes]) -> None:
    """Whatever is changed in the files of the trial is reported."""
    results = json.loads(members["analysis.json"])
    other_version = json.dumps(results | {"analysis": 2}).encode()
    results["looks"][1]["effect"]["low"] = 0.01
    changed = {
        "analysis.json": [
            b"[]",
            b"{",
            b'{"analysis": 1}',
            b"[" * 9999,
            json.dumps(results).encode(),
        ],
        "protocol.json": [members["protocol.json"].replace(b"0.2", b"0.1")],
        "methods.md": [b"", members["methods.md"].replace(b"to wait", b"to leave")],
    }
    for name, contents in changed.items():
        for content in contents:
            with pytest.raises(OURS, match=name):
                trial_files.compare(log, members | {name: content})
    tampered = members | {"analysis.json": changed["analysis.json"][-1]}
    with pytest.raises(OURS, match=r"looks 2.effect.low is 0.01, computed again"):
        studies.replay_bundle(zipped(tampered))
    said = trial_files.compare(log, members | {"analysis.json": other_version})
    assert "of another version of the analysis and was not compared" in said
    assert "no analysis.json to compare" in trial_files.compare(log, {})


def test_another_version_may_say_it_in_other_words_but_not_with_other_figures(
    sqlite_store: Store,
) -> None:
    study = departed(sqlite_store)
    log = read_log(sqlite_store, study)
    results = json.loads(files(studies.export_bundle(sqlite_store, study))["analysis.json"])
    results["deviations"] = ["Said in other words."]
    results["flow"][0]["what"] = "began"
    with pytest.raises(OURS, match=r"analysis.json: deviations"):
        trial_files.compare(log, {"analysis.json": json.dumps(results).encode()})
    results["source"] = "0" * 64
    said = trial_files.compare(log, {"analysis.json": json.dumps(results).encode()})
    assert "is as in analysis.json. Only figures were compared: it was made by" in said
    results["flow"][0]["people"] += 1
    with pytest.raises(OURS, match=r"flow 1.people is 13, computed again 12; it was made by"):
        trial_files.compare(log, {"analysis.json": json.dumps(results).encode()})


def test_a_trial_may_stop_at_a_look_that_shows_an_effect_and_only_then(
    sqlite_store: Store,
) -> None:
    study = begun(sqlite_store)
    studies.close_study(sqlite_store, study)
    title, _ = trial_text.headline(analysed(sqlite_store, study))
    assert title == "The trial was closed before its first look, after week 3"
    studies.reopen_study(sqlite_store, study)
    live(sqlite_store, study, 3)
    running = analysed(sqlite_store, study)
    assert trial_text.headline(running)[1][-1] == "The next look is after week 6."
    studies.close_study(sqlite_store, study)
    found = analysed(sqlite_store, study)
    assert found.looks[0].claim == 0
    assert found.deviations == ["The study was closed after 3 of 6 weeks."]
    title, basis = trial_text.headline(found)
    assert title == "The trial was closed and did not show whether help works (look after week 3)"
    assert "next look" not in " ".join(basis)

    looks = [msgspec.structs.replace(found.looks[0], claim=1)]
    _, basis = trial_text.headline(replace(running, looks=looks))
    assert basis[-1] == "The protocol allows the trial to stop now. The next look is after week 6."
    log = read_log(sqlite_store, study)
    trial = trial_analysis._trial_weeks(log, 6)
    of = log, found.protocol, trial.epochs, trial.configs
    assert trial_deviations.deviations(*of, shown=True) == []


def analysed(store: Store, study: str) -> studies.TrialAnalysis:
    """The promised analysis, which exists."""
    found = studies.trial_analysis(store, study)
    assert found is not None
    return found


def test_the_looks_are_those_of_the_arrays(sqlite_store: Store) -> None:
    study = begun(sqlite_store)
    live(sqlite_store, study, 6)
    log = read_log(sqlite_store, study)
    weeks = trial_analysis._trial_weeks(log, 6).weeks
    assert (weeks.states != UNKNOWN).all()
    seed = [log.config.seed % 2**32, trial_analysis.ANALYSIS]
    found = studies.trial_analysis(sqlite_store, study)
    assert found is not None
    assert found.looks == lot_trial.analyse(weeks, 3, (3, 6), seed=seed)
    assert found.deviations == []
    assert "None were recorded." in trial_text.methods(found, "dopl")
    looks = [
        msgspec.structs.replace(
            found.looks[0], effect=lot_trial.Interval(0.351, 0.09, 0.62), p=0.0002, nominal=0.03
        ),
        msgspec.structs.replace(found.looks[1], effect=lot_trial.Interval(None)),
    ]
    rows = trial_text.look_rows(replace(found, looks=looks))
    assert rows[0] == ("week 3", "+35 (+9 to +62)", "0.0002 (0.030)", "12 of 12")
    assert rows[1][1] == "unknown"
    assert len(trial_text.LOOK_COLUMNS) == len(rows[0])  # a phone has room for four
    studies.erase_person(sqlite_store, study, "p3", answers=True)
    weeks = trial_analysis._trial_weeks(read_log(sqlite_store, study), 6).weeks
    assert (weeks.states[:, 3] == UNKNOWN).all()
    assert (np.delete(weeks.states, 3, axis=1) != UNKNOWN).all()
    found = studies.trial_analysis(sqlite_store, study)
    assert found is not None
    assert any("with all that was known of them: 1 of the people" in x for x in found.deviations)
    early, late = found.looks
    looks = [msgspec.structs.replace(early, claim=1), msgspec.structs.replace(late, claim=0)]
    decided = replace(found, looks=looks)
    title, basis = trial_text.headline(decided)
    assert title == "The trial shows that help works (look after week 3)"  # whatever came later
    assert basis[0].startswith("The look after week 3 decided this.")
    assert f"{title}." in trial_text.methods(decided, "dopl")
