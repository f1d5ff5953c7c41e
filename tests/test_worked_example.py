"""The numbers of the guide "How it learns" are those of the code, and can be redone by hand.

The guide has the moves, as code, and its numbers in one table. A stale row fails, and the message
has the right numbers; `python tests/test_worked_example.py` writes all of them.
"""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from dopl_core import Dopl
from dopl_core.learning import decisions, effects
from dopl_core.learning.bandit import FloatArray
from dopl_core.learning.moves import everybody, model, own_rows, tilts
from dopl_core.learning.moves.model import Model
from dopl_core.learning.places import finding_out
from dopl_core.paths import ROOT

FILE = ROOT / "data" / "guides" / "how_it_learns.md"
GUIDE = FILE.read_text(encoding="utf-8")
LOW, HIGH = 0, 1
HELPED, WAITED = (
    0,
    5,
)  # two people of the example: one was helped and is High now, one waited in Low
TO_BEST, Q = 0, 100.0  # of the explanations that are shown
NOTHING, HALF = 0.0, 0.5  # their sizes
CANDIDATE = 6.5  # moves from Low to Low, of the candidate that is shown


def rows_of(header: str) -> list[list[str]]:
    """The cells of the table of the guide with this header."""
    body = GUIDE.partition(f"\n{header}\n")[2].partition("\n\n")[0]
    assert body, f"the guide has no table {header}"
    return [re.split(r" \| ", line.strip("| ")) for line in body.splitlines()[1:]]


SHOWN = {
    quantity: value.split(", ") for _, quantity, value in rows_of("| step | quantity | value |")
}

KINDS_SHOWN = [
    (kind, shown) for kind, *shown in rows_of("| kind of help | worst | between | best |")
]


@cache
def learner() -> Dopl:
    """The learner of the guide, after its moves and its first plan."""
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    [block] = [one for one in blocks if "count_moves" in one]
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102
    made: Dopl = names["learner"]
    return made


def now() -> np.ndarray:
    """Everybody's state after the moves."""
    return np.argmax(learner().visits.sum(axis=(1, 2)), axis=1)


@cache
def learnt() -> Model:
    return model.learn(learner().visits, None, np.random.default_rng(0))


def number_of(size: float) -> int:
    """The explanation that help of this size brings people to the best state, with Q."""
    each = len(everybody.SIZES) * len(everybody.ABOUT)
    at = list(everybody.SIZES).index(size) * len(everybody.ABOUT)
    return TO_BEST * each + at + list(everybody.ABOUT).index(Q)


def by_size(chance: FloatArray) -> FloatArray:
    """Chances [g] of all explanations, summed for each size."""
    sizes, abouts = len(everybody.SIZES), len(everybody.ABOUT)
    return chance.reshape(-1, sizes, abouts).sum(axis=(0, 2))


def prior_of_low() -> FloatArray:
    """The chances [g] of all explanations of Low, before any move."""
    _kernels, _about, level, prior = everybody.explanations(2, "other")
    chance: FloatArray = np.exp(level[:, None] + prior[:, :, LOW]).sum(axis=0)
    return chance


def prior_of_row() -> FloatArray:
    """What is believed of Low without help, in moves."""
    alone = learner().visits.sum(axis=0)[:, 0].astype(float)
    return everybody.prior_of_waiting(alone, ordered=True)[LOW]


def candidates() -> tuple[FloatArray, FloatArray]:
    """The log evidence and the posterior of the candidates for the prior of rows without help."""
    alone = learner().visits.sum(axis=0)[:, 0].astype(float)
    rows, chance = everybody._prior_rows(2, True)
    log = everybody.dirichlet_multinomial(alone, rows).sum(axis=1)
    weight = chance * np.exp(log)
    return log, weight / weight.sum()


@cache
def right() -> dict[str, list[float]]:
    """What the code says of each quantity of the table."""
    known = learnt().everybody
    log, weight = candidates()
    one = np.isclose(everybody._prior_rows(2, True)[0][:, LOW, LOW], CANDIDATE)
    found: dict[str, Any] = {
        "log evidence of the candidate": log[one],
        "posterior of the candidate": weight[one],
        "prior of Low without help, in moves: Low, High": prior_of_row(),
        "prior of the size in Low": by_size(prior_of_low()),
        "log evidence of all explanations": [known.log_evidence[LOW]],
        "posterior of the size in Low": by_size(known.chance[:, LOW]),
        "Low without help": [known.rows[LOW, 0, HIGH]],
        "Low with help": [known.rows[LOW, 1, HIGH]],
        "High without help": [known.rows[HIGH, 0, HIGH]],
        "High with help": [known.rows[HIGH, 1, HIGH]],
    }
    for name, size in (("nothing", NOTHING), ("half", HALF)):
        g = number_of(size)
        prior, chance = prior_of_low()[g], known.chance[g, LOW]
        found |= {
            f"{name}: prior": [prior],
            f"{name}: Low without help": [known.waiting[g, LOW, HIGH]],
            f"{name}: log evidence": [np.log(chance / prior) + known.log_evidence[LOW]],
            f"{name}: posterior": [chance],
            f"{name}: Low with help": [known.helped[g, LOW, HIGH]],
        }
    found |= person() | decision()
    return {name: [float(x) for x in value] for name, value in found.items()}


def person() -> dict[str, Any]:
    """The person who waited in Low: tilt, expected rows, how alike people are, own rows."""
    tilt = learnt().tilts
    assert tilt is not None
    counts = learner().visits.reshape(-1, 4, 2).astype(float)
    expected = tilts.tilted(learnt().everybody.rows.reshape(4, 2), tilt.eta)
    return {
        "variance of b": tilt.shared.personal[:1],
        "b": tilt.personal[WAITED, :1],
        "expected rows in Low: without help, with help": expected[WAITED, :2, HIGH],
        "probability of each k": own_rows.concentrations(counts, expected)[:, 0],
        "own rows in Low: without help, with help": learner()
        .known_dynamics()
        .mean[WAITED, LOW, :, HIGH],
    }


def decision() -> dict[str, Any]:
    """Gains, errors, the margin, and who is listed."""
    L, of, known = learner(), now(), learnt().everybody
    plan = L.planned()
    effect = decisions.effect_of_help(plan, L.known_dynamics())
    assert effect is not None
    change, covariance = known.effect()
    there = plan.occupancy.sum(axis=2)
    value = -plan.start[1:].reshape(-1, 2)[:, LOW]  # High is worth 0
    L.find_out = 0
    before = L.activate(of, 0)
    L.find_out = 1
    listed = L.activate(of, 0)
    assert L.finds_out(of, listed).tolist() == [x for x in listed if x not in before]
    own = plan.advantage[np.arange(len(of)), of]
    on = np.bincount(of[before], minlength=2) - [1, 0]  # the last place, in Low, is given up
    could = finding_out.HOPE * effect.error / np.sqrt(1 + on)
    [gone] = [x for x in before if x not in listed]
    return {
        "value of High over Low, for those in Low, in High": value @ there / there.sum(axis=0),
        "change by help in Low, in High": change[:, HIGH],
        "its standard deviation": np.sqrt(covariance[:, HIGH, HIGH]),
        "gain in Low, in High": effect.gain,
        "error in Low, in High": effect.error,
        "margin in High": decisions.margin(effect)[1:],
        "price of a place": [plan.multiplier],
        "value of High over Low, for person 5": [value[WAITED]],
        "advantages of persons 0 to 11": own,
        "listed by urgency": before,
        "hoped for in the last place: Low, High": np.array([own[gone], own[HELPED]]) + could,
        "listed": listed,
        "listed to find out": L.finds_out(of, listed),
    }


def expected(quantity: str) -> list[str]:
    """The right numbers, with as many decimals as the guide shows of each."""
    places = [len(number.partition(".")[2]) for number in SHOWN[quantity]]
    found = right()[quantity]
    return [f"{x + 0.0:.{n}f}" for x, n in zip(found, places, strict=True)]


def of_kind(kind: str) -> list[str]:
    """The mean size of help of a kind in three states."""
    return [f"{x:.2f}" for x in everybody.SIZES @ everybody.size_prior(3, kind)]


@pytest.mark.parametrize("quantity", sorted(SHOWN))
def test_the_numbers_of_the_guide_are_those_of_the_code(quantity: str) -> None:
    assert SHOWN[quantity] == expected(quantity)


def test_the_guide_shows_every_number_of_the_example() -> None:
    assert SHOWN.keys() == right().keys()


def test_the_guide_says_what_each_kind_of_help_does_before_any_move() -> None:
    assert dict(KINDS_SHOWN) == {kind: of_kind(kind) for kind in effects.KINDS}


# --- by hand, with the formulas of the guide and no code of the model


def by_hand(counts: Any, alpha: Any) -> float:
    """ln DM(counts; alpha)."""
    counts, alpha = np.asarray(counts, dtype=float), np.asarray(alpha, dtype=float)
    each = gammaln(alpha + counts) - gammaln(alpha)
    return float(each.sum() + gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum()))


def test_the_candidates_evidence_can_be_redone_by_hand() -> None:
    low, high = by_hand([3, 1], [6.5, 3.5]), by_hand([3, 1], [3.5, 6.5])
    assert right()["log evidence of the candidate"] == pytest.approx([low + high])


@pytest.mark.parametrize(("name", "e"), [("nothing", NOTHING), ("half", HALF)])
def test_an_explanation_can_be_redone_by_hand(name: str, e: float) -> None:
    """The rows by four rounds of expectation and maximisation, then the evidence and the weight."""
    numbers = right()
    prior = numbers["prior of Low without help, in moves: Low, High"]
    waited, helped = np.array([3.0, 1.0]) + prior, np.array([1.0, 3.0])
    worth = helped * (1 + Q) / (Q + 4)
    w = waited / waited.sum()
    for _ in range(4):
        stays, rises = (1 - e) * w[0], w[1] + e * w[0]  # with help
        back = np.array([worth[0] + worth[1] * e * w[0] / rises, worth[1] * w[1] / rises])
        assert stays + rises == pytest.approx(1)
        w = (waited + back) / (waited + back).sum()
    assert numbers[f"{name}: Low without help"] == pytest.approx(w[1:])
    with_help = np.array([(1 - e) * w[0], w[1] + e * w[0]])
    evidence = by_hand(helped, Q * with_help) + float(waited @ np.log(w))
    assert numbers[f"{name}: log evidence"] == pytest.approx([evidence])
    chance = np.array(numbers[f"{name}: prior"]) * np.exp(
        evidence - numbers["log evidence of all explanations"][0]
    )
    assert numbers[f"{name}: posterior"] == pytest.approx(chance)
    row = (helped + Q * with_help) / (4 + Q)
    assert numbers[f"{name}: Low with help"] == pytest.approx(row[1:])


def test_the_persons_rows_can_be_redone_by_hand() -> None:
    numbers = right()
    [b], [v], (waiting, _) = (
        numbers["b"],
        numbers["variance of b"],
        numbers["expected rows in Low: without help, with help"],
    )
    assert b == pytest.approx(v * (-1 - (2 * waiting - 1)), abs=1e-3)
    alike = numbers["Low without help"][0]
    odds = np.exp(2 * b) * alike / (1 - alike)
    assert waiting == pytest.approx(odds / (1 + odds))
    k, chance = own_rows.CONCENTRATIONS, np.array(numbers["probability of each k"])
    own = numbers["own rows in Low: without help, with help"]
    assert own[0] == pytest.approx(chance @ (k * waiting / (1 + k)), abs=1e-3)


def test_the_decision_can_be_redone_by_hand() -> None:
    numbers = right()
    value = np.array(numbers["value of High over Low, for those in Low, in High"])
    gain = value * numbers["change by help in Low, in High"]
    error = value * numbers["its standard deviation"]
    assert numbers["gain in Low, in High"] == pytest.approx(gain)
    assert numbers["error in Low, in High"] == pytest.approx(error)
    square = error[HIGH] ** 2 + (error**2).mean()
    assert numbers["margin in High"] == pytest.approx([decisions.MARGIN * np.sqrt(square)])
    without, with_help = numbers["own rows in Low: without help, with help"]
    [price], [own] = numbers["price of a place"], numbers["value of High over Low, for person 5"]
    advantage = numbers["advantages of persons 0 to 11"]
    assert advantage[WAITED] == pytest.approx(own * (with_help - without) - price, abs=1e-6)
    [behind] = numbers["margin in High"]
    others = [x for x in numbers["listed by urgency"] if x in numbers["listed"]]
    gone = int(next(x for x in numbers["listed by urgency"] if x not in others))
    assert advantage[HELPED] - behind < advantage[gone]
    low, high = numbers["hoped for in the last place: Low, High"]
    shares = finding_out.HOPE * error / np.sqrt([1 + len(others), 1])
    assert [low, high] == pytest.approx(np.array([advantage[gone], advantage[HELPED]]) + shares)
    assert high > low


def write() -> None:
    """Write the right numbers to the guide."""
    text = GUIDE
    for quantity, shown in SHOWN.items():
        now, then = (f"| {quantity} | {', '.join(of)} |" for of in (shown, expected(quantity)))
        text = text.replace(now, then)
    for kind, shown in KINDS_SHOWN:
        now, then = (f"| {' | '.join((kind, *of))} |" for of in (shown, of_kind(kind)))
        text = text.replace(now, then)
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
