"""The power of a trial before it begins."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from playing import STATES, cpap
from scipy.special import ndtr, ndtri

from dopl_core import cli, studies
from dopl_core.learning.bandit import ACT, UNKNOWN, WAIT, better_states
from dopl_core.learning.places import lot_trial
from dopl_core.learning.places.reported_weeks import ReportedWeeks, better_off
from dopl_core.studies import Arm, Store, StudyConfig, StudyError, power_text
from dopl_core.studies.analysis import power
from dopl_core.studies.analysis.power import Power

ROSTERS = Path(__file__).resolve().parents[3] / "data" / "rosters"
DESIGN = Power(2, 26, (13, 26), 0.84, 0.01, 0.7, 0.9)


def twelve(**settings: object) -> StudyConfig:
    arms = [Arm(f"p{i}", f"p{i}", "all", STATES[i % 3]) for i in range(12)]
    return studies.from_roster(arms, STATES, **({"title": "T", "budget": 4} | settings))


def test_help_makes_the_effect_more_people_better_off_as_far_as_there_is_room() -> None:
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.0, 0.9], [0.3, 0.7, 0.0]])
    both = power.with_effect(rows, 0.25)
    assert np.allclose(both.sum(axis=-1), 1)
    assert np.allclose(both[:, WAIT], rows)
    better = (both * better_states(3)[:, None]).sum(axis=-1)
    assert np.allclose(better[:, ACT] - better[:, WAIT], [0.25, 0.1, 0.25])
    assert np.allclose(both[0, ACT], [0.25, 0.45, 0.3])  # where they go is as without help
    assert np.allclose(both[2, ACT], [0.225, 0.525, 0.25])  # nobody stayed: help keeps them there


def test_without_records_most_people_stay_where_they_are() -> None:
    rows = power.prior_rows(50, 20, 3, np.random.default_rng(0))
    assert rows.shape == (50, 20, 3, 3)
    stay = np.einsum("dnss->dns", rows).mean(axis=(0, 1))
    assert (stay > 0.5).all()


def test_the_statistic_is_that_of_the_analysis_and_the_drift_is_its_mean() -> None:
    rng = np.random.default_rng(1)
    D, N, S = 40, 12, 3
    states, gain = rng.integers(0, S, (D, N)), rng.random((D, N)) / 2
    listed = np.zeros((D, N), dtype=bool)
    listed[:, :5] = True
    drawn = np.zeros((D, N), dtype=bool)
    drawn[:, [0, 3, 6, 9]] = True
    after = rng.integers(0, S, (D, N))
    y = better_off(states, after, S)
    found = power.week_sums(states, listed, drawn, y, gain, S)
    helped = (listed ^ drawn).astype(np.int64)
    weeks = ReportedWeeks(states, helped, after, helped, drawn.astype(np.int64))
    sums = lot_trial.lottery_sums(weeks, S, redraws=1)
    assert np.allclose(found.statistic, sums.outcome[0].sum(axis=0))
    assert np.allclose(found.variance, sums.variance.sum(axis=0))

    rows = power.with_effect(power.prior_rows(300, N, S, rng), 0.3)
    trial = power.simulate(rows, np.zeros((300, N), dtype=np.int64), np.zeros((N, S)), 5, 2, 6, rng)
    error = (trial.statistic - trial.drift).sum(axis=1)
    assert abs(error.mean()) < 3 * error.std() / np.sqrt(len(error))
    assert trial.drift.mean() > 0.2


def test_people_with_an_unknown_state_leave_their_lottery_as_in_the_analysis() -> None:
    rng = np.random.default_rng(1)
    D, N, S = 40, 12, 3
    states, after = rng.integers(0, S, (2, D, N))
    listed = np.tile(np.arange(N) < 5, (D, 1))
    drawn = np.tile(np.isin(np.arange(N), [0, 3, 6, 9]), (D, 1))
    known = rng.random((D, N)) < 0.7
    y, gain = better_off(states, after, S), rng.random((D, N)) / 2
    found = power.week_sums(states, listed, drawn, y, gain, S, known)
    helped = (listed ^ drawn).astype(np.int64)
    seen = np.where(known, after, UNKNOWN)
    weeks = ReportedWeeks(states, helped, seen, helped, drawn.astype(np.int64))
    sums = lot_trial.lottery_sums(weeks, S, redraws=1)
    assert np.allclose(found.statistic, sums.outcome[0].sum(axis=0))
    assert np.allclose(found.variance, sums.variance.sum(axis=0))

    rows = power.with_effect(power.prior_rows(300, N, S, rng), 0.3)
    of = np.zeros((300, N), dtype=np.int64), np.zeros((N, S)), 5, 2, 6, rng
    all_known, trial = power.simulate(rows, *of), power.simulate(rows, *of, unknown=0.3)
    error = (trial.statistic - trial.drift).sum(axis=1)
    assert abs(error.mean()) < 3 * error.std() / np.sqrt(len(error))
    assert 0.3 < trial.drift.sum() / all_known.drift.sum() < 0.49  # both states must be known


def test_states_are_unknown_as_often_as_in_the_records() -> None:
    config = twelve()
    design = {"weeks": (12,), "by_lot": (2,), "clinics": 30}
    found = []
    for missing in (99, 3):
        lines = ["id,when,state,helped"]
        lines += [
            f"p{i},{week},{'' if (i + week) % missing == 0 else STATES[(i + week) % 2]},0"
            for i in range(12)
            for week in range(1, 13)
        ]
        past = studies.read_history("\n".join(lines).encode(), config)
        found += power.compute(config, past, **design)
    assert [one.unknown for one in found] == [0, pytest.approx(1 / 3)]
    assert found[1].power < found[0].power - 0.1


def test_one_look_has_the_power_of_the_normal_test() -> None:
    drift, variance = np.array([[0.0], [2.0], [6.0]]), np.array([[4.0], [4.0], [4.0]])
    found = power.crossing(drift, variance, 1.0, np.array([0.05]), np.random.default_rng(0))
    assert np.allclose(found, ndtr(drift[:, 0] / 2 + ndtri(0.025)), atol=0.02)


def test_looks_in_between_cost_little_power() -> None:
    drift, variance = np.array([[3.0, 6.0]]), np.array([[2.0, 4.0]])
    spent = lot_trial.spent((13, 26))
    two = power.crossing(drift, variance, 1.0, spent, np.random.default_rng(0))[0]
    assert abs(two - ndtr(3 + ndtri(0.025))) < 0.02


def test_power_grows_with_places_weeks_and_effect() -> None:
    told: list[float] = []
    small = {"weeks": (6, 12), "by_lot": (1, 2), "clinics": 30}
    found = power.compute(twelve(), effect=0.2, tell=told.append, **small)
    assert [(one.by_lot, one.weeks) for one in found] == [(1, 6), (1, 12), (2, 6), (2, 12)]
    one, longer, more, most = (each.power for each in found)
    assert 0.03 < one < min(longer, more) < most < 1
    assert found == power.compute(twelve(), effect=0.2, **small)
    larger = power.compute(twelve(), effect=0.4, **small)
    assert all(a.power < b.power for a, b in zip(found, larger, strict=True))
    assert all(each.low <= each.power <= each.high and each.error < 0.03 for each in found)
    assert told == sorted(told)
    assert told[-1] == 1


def test_past_records_decide_what_people_do_without_help() -> None:
    lines = ["id,when,state,helped"]
    lines += [f"p{i},{week},{STATES[i % 3]},0" for i in range(12) for week in range(12)]
    config = twelve()
    past = studies.read_history("\n".join(lines).encode(), config)  # nobody ever moves
    rng = np.random.default_rng(0)
    known, states, _ = power.clinics_like(config, past, 20, rng)
    assert known.shape == (20, 12, 3, 3)
    assert np.einsum("dnss->dns", known)[:, np.arange(12), np.arange(12) % 3].mean() > 0.85
    assert states.tolist() == [[i % 3 for i in range(12)]] * 20


def test_unknown_states_are_drawn_from_those_that_are_known() -> None:
    arms = [Arm(f"p{i}", f"p{i}", "all", "High" if i else "") for i in range(5)]
    config = studies.from_roster(arms, STATES, title="T", budget=2)
    _, states, _ = power.clinics_like(config, None, 3, np.random.default_rng(0))
    assert (states == 2).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"effect": 0}, "effect is 0: a share above 0"),
        ({"weeks": (1,)}, "weeks is 1: a whole number from 2 to 520"),
        ({"looks": 0}, "looks is 0: a whole number from 1 to 50"),
        ({"by_lot": (4,)}, "by_lot is 4: a whole number from 1 to 3"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        power.compute(twelve(), **given)


def test_a_trial_needs_real_people_and_somebody_to_compare_with() -> None:
    with pytest.raises(StudyError, match="budget is 12 for 12 people"):
        power.compute(twelve(budget=12))
    with pytest.raises(StudyError, match="at least 2 places"):
        power.compute(twelve(budget=1))
    with pytest.raises(StudyError, match="real people"):
        power.compute(cpap())


def test_the_recommended_design_draws_the_fewest_people() -> None:
    weak, longer = DESIGN._replace(weeks=8, power=0.5), DESIGN._replace(by_lot=1, weeks=39)
    assert power.recommended([weak, DESIGN, longer]) == longer
    assert power.recommended([weak, DESIGN, longer], weeks=26) == DESIGN
    assert power.recommended([weak, longer], weeks=26) == longer
    assert power.recommended([weak]) is None
    assert power.even_looks(26, 3) == (9, 17, 26)
    assert power.usual_lots(twelve(budget=8)) == (1, 2, 4)
    many = power.compute(twelve(), looks=10, by_lot=(1,), clinics=4)
    assert [one.weeks for one in many] == [13, 26, 39, 52]  # 8 weeks have no room for ten looks
    assert power.usual_lots(twelve(budget=2)) == (1,)


def test_advice_names_the_design_and_its_power() -> None:
    config = twelve(noun="patient")
    said = power_text.advice([DESIGN], config, 0.2)
    assert said.startswith("Choose 2 of 4 places at random for 26 weeks. If help improves 20 more")
    assert "84 %" in said
    assert "fewest" not in said  # there is nothing to choose from
    several = [DESIGN, DESIGN._replace(weeks=8, power=0.5)]
    assert "of at most 30 weeks" in power_text.advice(several, config, 0.2, weeks=30)
    assert "draws the fewest patients at random" in power_text.advice(several, config, 0.2)
    none = power_text.advice([DESIGN._replace(power=0.4)], config, 0.2)
    assert none.startswith("No design here has a power of 80 %. The best one has 40 %")
    wide = DESIGN._replace(low=0.7, high=0.9)
    doubt = "This is uncertain: a power of 84 % has a 90 % interval of 70 to 90 %."
    assert doubt in power_text.caveat([wide], records=True)
    assert "states that nobody reports lower" in power_text.caveat([wide], records=True)
    for setting in ({"once_in": 2}, {"wait_after_joining": 1}, {"most_times": 3}):
        ruled = power_text.caveat([wide], records=True, config=twelve(**setting))
        assert "Your rules are not simulated, and may lower it." in ruled
    assert "rules" not in power_text.caveat([wide], records=True, config=config)
    some = power_text.caveat([wide._replace(unknown=0.1)], records=True)
    assert "As in your past records, 10 % of the states are unknown. People who leave" in some
    assert power_text.rows([DESIGN], 4) == [("2 of 4", "84 %")]
    assert power_text.columns([DESIGN], "month") == ["Places at random", "26 months"]


def test_the_commands_compute_power_and_fix_the_protocol(
    sqlite_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(studies, "open_store", lambda: sqlite_store)
    monkeypatch.setattr(power, "CLINICS", 20)
    file = tmp_path / "protocol.json"
    of = [str(ROSTERS / "clinic.csv"), "--states", "Low,Moderate,High", "--budget", "5"]
    records = ["--history", str(ROSTERS / "clinic_history.csv")]
    with pytest.raises(SystemExit, match="no design has enough power"):
        cli.main(["power", *of, "--weeks", "4", "6", "--by-lot", "1", "--protocol", str(file)])
    assert not file.exists()
    cli.main(["power", *of, *records, "--weeks", "30", "--by-lot", "2", "--protocol", str(file)])
    said = capsys.readouterr().out
    assert "2 of 5" in said
    assert "standard error of at most" in said
    assert hashlib.sha256(file.read_bytes()).hexdigest() in said  # as sha256sum prints it
    cli.main(["new", *of, "--title", "T", "--sitting", "0", "--protocol", str(file)])
    study = capsys.readouterr().out.strip()
    fixed = studies.read_protocol(sqlite_store, study)
    assert fixed is not None
    assert fixed.digest in said
    assert (fixed.protocol.weeks, fixed.protocol.by_lot) == (30, 2)
    assert studies.get_study(sqlite_store, study).config.by_lot == 2
    with pytest.raises(SystemExit, match="the protocol has by_lot 2, the study 1"):
        cli.main(["new", *of, "--title", "T", "--by-lot", "1", "--protocol", str(file)])


def test_the_text_of_a_protocol_says_all_that_was_promised() -> None:
    config = twelve(by_lot=2, noun="patient")
    made = power.protocol_of(DESIGN, config, "Do calls help?", 0.2)
    text = studies.protocol_text(made, config, 1_790_000_000_000)
    for words in (
        "Question: Do calls help?",
        "begins with 12 patients",
        "2 of them, drawn at random, wait this week. 2 of the other 8",
        "States from worst to best: Low, Moderate, High",
        "Secondary outcome: The effect of the list",
        "after 13 and 26 reported weeks",
        "error of 5 %",
        "20 more patients in 100",
        "probability of 84 %",
        "Fixed: 2026-09-21",
        studies.protocol_digest(made),
    ):
        assert words in text
