"""Environments hold the paper's numbers; a file that breaks a rule is refused with key and row."""

import copy
import itertools
import tomllib

import numpy as np
import pytest

from dopl_core import environments
from dopl_core.learning.planning import plan


def test_the_papers_environments_have_the_papers_sizes():
    sizes = {
        name: (b.n_arms, b.n_states, b.budget, b.episodes, b.horizon, b.epsilon)
        for name in environments.names()
        for b in [environments.load(name)]
    }
    assert sizes["app_marketing"] == (10, 4, 4, 4000, 100, 1e-5)
    assert sizes["cpap"] == (20, 3, 8, 300, 1000, 1e-5)
    assert sizes["armman"] == (20, 3, 10, 20000, 5, 1e-5)
    assert sizes["sports"][:3] == (25, 16, 5)


@pytest.mark.parametrize(("name", "bound"), [("cpap", 15.9004), ("app_marketing", 6.782)])
def test_the_lp_bound_is_the_known_one(name, bound):
    b = environments.load(name)
    value = plan(b.rewards, b.transitions, b.transitions, b.budget).value
    assert value == pytest.approx(bound, abs=10.0 ** -len(str(bound).split(".")[1]))


def test_app_marketing_with_rewards_in_thirds_is_bounded_by_6_8():
    b = environments.load("app_marketing")
    thirds = np.tile([0, 1 / 3, 2 / 3, 1], (10, 1))
    assert plan(thirds, b.transitions, b.transitions, 4).value == pytest.approx(6.8, abs=1e-4)


def test_armman_draws_its_ranges_anew_for_each_arm_and_seed():
    b = environments.load("armman")
    assert [g[0] for g in b.groups] == ["A"] * 4 + ["B"] * 4 + ["C"] * 12
    stays = b.transitions[:, 0, 0, 0]
    assert len(set(stays)) == 20
    assert stays.min() >= 0.5
    assert stays.max() <= 0.95
    assert (environments.load("armman").transitions == b.transitions).all()
    assert (environments.load("armman", seed=1).transitions != b.transitions).any()
    assert b.states[0].label == "Self-motivated"
    assert b.rewards[0, 0] == 1


def test_the_four_conditions_of_a_player_move_independently():
    b = environments.load("sports")
    # Chances to hold next day (held, lost), as the file says: sleep, calories, sharpness, sprint.
    alone = [(0.75, 0.40), (0.80, 0.50), (0.70, 0.25), (0.85, 0.20)]
    states = [bits[::-1] for bits in itertools.product((0, 1), repeat=4)]
    for (s, now), (t, then) in itertools.product(enumerate(states), repeat=2):
        chances = [alone[i][now[i]] for i in range(4)]
        expected = np.prod([p if bit == 0 else 1 - p for p, bit in zip(chances, then, strict=True)])
        assert b.transitions[0, s, 0, t] == pytest.approx(expected, abs=1e-9)
    assert b.rewards[0, 0] == 1
    assert b.rewards[0, 15] == 0


TOY = tomllib.loads("""
name = "toy"
title = "Toy"
question = "Which?"
noun = "thing"
budget = 2
[[states]]
label = "Bad"
[[states]]
label = "Good"
[[groups]]
name = "G"
arms = 3
rewards = [0.0, 1.0]
wait = [[0.5, 0.5], [[0.2, 0.4], "rest"]]
act = [[0.1, 0.9], [0.0, 1.0]]
""")


def broken(path, value):
    data = copy.deepcopy(TOY)
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


def test_any_file_of_this_format_is_an_environment(tmp_path):
    bandit = environments.parse(TOY)
    assert bandit.transitions.shape == (3, 2, 2, 2)
    assert ((bandit.transitions[:, 1, 0, 0] > 0.2) & (bandit.transitions[:, 1, 0, 0] < 0.4)).all()
    assert bandit.arms[0] == "Thing 1"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["colour"], "red", 'the file: key "colour" is unknown'),
        (["budget"], None, 'the file: key "budget" is missing'),
        (["groups", 0, "act"], None, 'group "G": key "act" is missing'),
        (["groups", 0, "weight"], 1, 'group "G": key "weight" is unknown'),
        (["states", 0, "label"], None, 'state 1: key "label" is missing'),
        (
            ["groups", 0, "wait", 1, 0],
            [0.4, 0.2],
            r"wait, row 2: range \[0.4, 0.2\] must go from low to high",
        ),
        (["groups", 0, "wait", 0], [0.5, 0.4], "wait, row 1: the row sums to 0.9, not 1"),
        (["groups", 0, "act", 1], ["rest", "rest"], 'act, row 2: only one entry can be "rest"'),
        (["groups", 0, "act", 0], [-0.1, "rest"], "act, row 1: -0.1 is not a probability"),
        (["groups", 0, "act", 0], [0.1], "act, row 1: must have 2 entries"),
        (["groups", 0, "act", 0], ["x", 1.0], 'act, row 1: "x" is not a number'),
        (["groups", 0, "act"], [[0.1, 0.9]], "act: must have 2 rows"),
        (["groups", 0, "arms"], 0, "arms is 0"),
        (["groups", 0, "rewards"], [0.0], "rewards must be 2 numbers"),
        (["groups", 0, "rewards"], [0.0, 2.0], "rewards: arm 0, state 1 is 2.0"),
        (["budget"], 4, "number of arms, 3"),
        (["budget"], 2.5, "budget is 2.5: a whole number from 0 to 100000 needed"),
        (["groups", 0, "columns"], ["risk"], 'group "G": columns is a list of 1'),
        (["groups", 0, "columns"], {"risk": ""}, 'group "G": columns: "risk" is empty'),
        (["groups", 0, "columns"], {"risk": 3}, 'columns: "risk" is 3: a text, a range'),
        (["groups", 0, "columns"], {"risk": []}, 'columns: "risk" is a list of 0: a text'),
        (["groups", 0, "columns"], {"age": [60]}, r'columns: "age": a range is \[low, high\]'),
        (["groups", 0, "columns"], {"age": [80, 60]}, r"range \[80, 60\] must go from low to high"),
        (["groups", 0, "columns"], {"age": [60, "old"]}, "is 'old': a number above"),
        (["groups", 0, "columns"], {"ward": ["A", 2]}, 'columns: "ward", text 2 is 2: text needed'),
    ],
)
def test_a_broken_file_is_refused_with_the_key_the_row_and_the_reason(path, value, reason):
    with pytest.raises(ValueError, match=reason):
        environments.parse(broken(path, value))


def test_a_group_gives_its_arms_columns():
    data = copy.deepcopy(TOY)
    data["groups"].append(copy.deepcopy(data["groups"][0]) | {"name": "H", "arms": 40})
    data["groups"][1]["columns"] = {"risk": "high", "age": [60, 80], "ward": ["A", "B"]}
    bandit = environments.parse(data)
    risk, age, ward = (bandit.columns[name] for name in ("risk", "age", "ward"))
    assert risk == ("",) * 3 + ("high",) * 40
    assert set(ward[3:]) == {"A", "B"}
    ages = [float(text) for text in age[3:]]
    assert len(set(ages)) == 40
    assert min(ages) >= 60
    assert max(ages) <= 80
    assert environments.parse(data).columns == bandit.columns
    assert environments.parse(data, seed=1).columns["age"] != age
    assert (bandit.transitions[:3] == environments.parse(TOY).transitions).all()


def test_errors_name_the_file(tmp_path):
    bad = tmp_path / "mine.toml"
    bad.write_text("name = ")
    with pytest.raises(ValueError, match=r"mine.toml: not a TOML file"):
        environments.load(bad)
    bad.write_text('name = "x"')
    with pytest.raises(ValueError, match=r'mine.toml: the file: key "budget" is missing'):
        environments.load(bad)
    with pytest.raises(ValueError, match="file not found"):
        environments.load(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="is not one of app_marketing, armman, cpap, sports"):
        environments.load("../cpap")
