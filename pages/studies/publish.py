"""I want to publish this: the power of a trial, and the protocol that a new study is made with."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dopl_core import studies
from dopl_core.studies import (
    FixedProtocol,
    Protocol,
    Records,
    Study,
    StudyConfig,
    StudyError,
    plural,
    power,
    power_text,
)
from pages.shared.clicks import clicked
from pages.shared.guards import store
from pages.shared.markdown import plain
from pages.studies.print_sheet import print_text

_WEEKS = "publish-weeks"  # key of the field


def ask(config: StudyConfig, past: Records | None, lots: str) -> tuple[bool, Protocol | None]:
    """Whether the study can be created, and the protocol of its trial if the owner wants one.

    lots: the key of the field for by_lot
    """
    if not st.checkbox(
        "I want to publish this",
        key="publish",
        help="Plan a trial: its power is computed, and its protocol is fixed before the first "
        "list.",
    ):
        return True, None
    with st.container(border=True, key="publish-box"):
        question, effect, weeks, looks = _fields(config)
        found = _computed(config, past, effect, weeks, looks)
        if found:
            _show_power(found, config, effect, weeks, lots)
            caveat = power_text.caveat(found, records=past is not None, config=config)
            st.caption(f"{plain(caveat)} {power_text.COST}")
        if not config.by_lot:
            how = "Choose a design above" if found else "Compute the power first"
            st.info(f"A trial needs places chosen at random. {how}, or set them in step 3.")
            return False, None
        if not 1 <= looks <= weeks:
            word = plain(config.epoch_word)
            raise StudyError(f"A trial needs at least one analysis, and a {word} for each")
        looked = power.even_looks(weeks, looks)
        here = [one for one in found if (one.by_lot, one.looks) == (config.by_lot, looked)]
        unknown = power.Power(config.by_lot, weeks, looked, float("nan"), 0, 0, 0)
        made = power.protocol_of(here[0] if here else unknown, config, question, effect)
        with st.expander("The protocol, as it will be fixed"):
            _show(made, config, None)
        st.caption("*Create the study* fixes this protocol. Nobody can change it afterwards.")
        return True, made


def _fields(config: StudyConfig) -> tuple[str, float, int, int]:
    """What the trial asks, the expected effect as a share, weeks, and the number of analyses."""
    people, words = plain(plural(config.noun)), plain(plural(config.epoch_word))
    st.markdown(
        "A trial is believed if its design is fixed before it begins. Places chosen at random show "
        f"what help does. *Compute power* says how many of them you need, and for how many {words}."
    )
    begin = f"Does help improve how {plural(config.noun)} are doing?"
    question = st.text_input("What does the trial ask?", begin, 2_000, key="publish-question")
    left, middle, right = st.columns(3, vertical_alignment="bottom")
    more = left.number_input(
        f"How many more {people} in 100 get better with help?", value=20, key="publish-effect"
    )
    weeks = middle.number_input(f"How many {words} can it last?", value=26, step=1, key=_WEEKS)
    looks = right.number_input(
        "Number of analyses",
        value=2,
        step=1,
        key="publish-looks",
        help="Evenly spaced; the last one is at the end. The trial may stop at each of them.",
    )
    if not 0 < more <= 100:
        raise StudyError("How many get better with help: a number above 0 and at most 100 needed")
    return question, more / 100, weeks, looks


def _computed(
    config: StudyConfig, past: Records | None, effect: float, weeks: int, looks: int
) -> list[power.Power]:
    """The power of all designs, if it was computed for this roster and this effect."""
    states = tuple((arm.id, arm.state) for arm in config.arms)
    order = tuple(state.label for state in config.states)
    of = (states, order, config.budget, past and past.text, effect, looks)
    if clicked("Compute power", key="compute-power"):
        bar = st.progress(0.0, "Simulating trials…")
        lots = {*power.usual_lots(config), *([config.by_lot] if config.by_lot else [])}
        found = power.compute(
            config,
            past,
            effect=effect,
            weeks=sorted({*power.usual_weeks(looks), weeks}),
            by_lot=sorted(lots),
            looks=looks,
            tell=lambda share: bar.progress(share, "Simulating trials…"),
        )
        bar.empty()
        st.session_state["power"] = of, found
    known, found = st.session_state.get("power", (None, []))
    return found if known == of else []


def _show_power(
    found: Sequence[power.Power], config: StudyConfig, effect: float, weeks: int, lots: str
) -> None:
    table = pd.DataFrame(
        power_text.rows(found, config.budget),
        columns=power_text.columns(found, config.epoch_word),
    )
    st.markdown("**Power: how likely the trial is to show this effect**")
    st.dataframe(table, hide_index=True)
    st.markdown(plain(power_text.advice(found, config, effect, weeks)))
    best = power.recommended(found, weeks)
    if best is not None and (config.by_lot, weeks) != (best.by_lot, best.weeks):
        words = f"Use {power_text.design(best, config)}"
        st.button(plain(words), key="use-design", on_click=_use, args=(best, lots))


def _use(best: power.Power, lots: str) -> None:
    """Fill in a design."""
    st.session_state[lots] = best.by_lot
    st.session_state[_WEEKS] = best.weeks


def show_fixed(study: Study) -> None:
    """The protocol of a study that was made with one, to read and to print."""
    if (fixed := studies.read_protocol(store(), study.id)) is not None:
        when = studies.fixed_words(fixed.at)
        with st.expander(f"Protocol of the trial, fixed on {when}", icon=":material/lock:"):
            _show(fixed.protocol, study.config, fixed)


def _show(protocol: Protocol, config: StudyConfig, fixed: FixedProtocol | None) -> None:
    words = studies.protocol_text(protocol, config, fixed and fixed.at)
    for line in words.splitlines():
        heading, _, said = line.partition(": ")
        st.markdown(f"**{heading}.** {plain(said)}")
    with st.container(horizontal=True):
        print_text(f"{config.title}: protocol", words, "print-protocol")
        name, kind = "protocol.json", "application/json"
        content = studies.protocol_json(protocol)
        st.download_button("Protocol (JSON)", content, name, kind, key=name, on_click="ignore")
