"""The learner and the simulated world of a study, made from its configuration."""

from collections.abc import Sequence

from dopl_core.learning.dopl import Dopl
from dopl_core.learning.learner import Learner
from dopl_core.studies.model import judged_people, rules
from dopl_core.studies.model.log_values import Epoch
from dopl_core.studies.model.study_config import StudyConfig, bandit_of, check_size
from dopl_core.world import SimulatedWorld


def world_of(config: StudyConfig) -> SimulatedWorld:
    """The simulated world, before its first episode."""
    return SimulatedWorld(bandit_of(config), config.seed)


def learner_of(config: StudyConfig) -> Learner:
    """The learner, before its first plan."""
    assert config.engine != "auto"  # noqa: S101
    check_size(config)
    learner = Dopl(
        config.n_arms,
        config.n_states,
        config.budget,
        horizon=config.horizon,
        seed=config.seed,
        design=config.design,
        confidence=config.confidence,
        engine=config.engine,
        pays=config.pays,
        ordered=config.ordered,
    )
    adapt(learner, config)
    return learner


def adapt(learner: Learner, config: StudyConfig, epochs: Sequence[Epoch] = ()) -> None:
    """Tell the learner the present arms and settings of the study.

    epochs: all before, as corrected by now
    """
    # In a simulated world the learner has to find the groups.
    observed = config.world == "observed"
    learner.adapt(
        config.present,
        config.budget,
        answers=config.answers,
        by_lot=config.by_lot,
        find_out=config.find_out,
        help_kind=config.help_kind,
        weigh_annotators=config.weigh_people,
        groups=tuple(arm.group for arm in config.arms) if observed else None,
        columns=config.columns,
        sharing=rules.sharing(config),
        caps=rules.caps(config, epochs),
        lists=[epoch.arms for epoch in epochs if epoch.episode == learner.episode],
    )
    learner.judged = judged_people.judged_by_each(config, epochs)
