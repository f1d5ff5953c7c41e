"""The interface of studies for pages and commands: one function for each thing a person can do.

Each call is one short transaction (or a read), committed when it returns, and safe from many
threads and processes at once. Nothing here knows of a web page.

    store = open_store()                                  # DOPL_DATABASE_URL, else dopl.db
    config = from_environment("cpap", horizon=5)          # a simulated world
    config = from_roster(read_roster(path, states), states, title=..., budget=8)   # an observed one
    past = read_history(path, config)                     # past records, if there are some
    read_protocol(store, study)                           # of a trial, if it was made with one
    trial_rules(store, study)                             # what must stay as it is until it ends
    trial_analysis(store, study), trial_text              # what its protocol promised, at its looks
    study = create_study(store, config, past)             # its id; with its first duels and plan

    match next_duel(store, study, "Ann"):                 # what annotators do
        case Ask() as ask: receipt = answer(store, ask.impression, "left", response_ms=840)
        case Waiting() as wait: ...                       # wait.reason; wait.plan_due: advance()
        case Finished(): ...
        case Consent() as asked: agree(store, study, "Ann", asked.version)   # or nothing is asked
    if receipt.plan_due: advance(store, study)            # slow: in a process of its own
    undo(store, study, "Ann")                             # the duel again, or None
    own_answers(store, study, "Ann"); change(...); flag(...)
    give_reason(store, ask.impression, "Ann", ["trend"])  # if receipt.asks_reason

    read_lists(store, study)                              # what owners do: this week's list
    explain(store, study, "p1")                           # why somebody is on the list, or not
    change_list(store, study, remove=["p1"], because="on holiday")   # the next in line moves up
    observe(store, study, {"p1": "Low", "p2": None}, helped=["p1"], week=3)   # None: unknown
    read_draft(store, study, 3); change_draft(...)        # a report that is being written
    correct(store, study, 2, {"p1": "High"})              # correct the report of week 2
    undo_report(store, study, 3)                          # the latest report; its list is back
    join(store, study, [Arm(...)]); leave(store, study, ["p2"]); change_settings(store, study, ...)
    exclude(store, study, "Ann"); include(...)            # whether the next plan counts her answers
    due(store, study)                                     # who is asked for how many answers now
    limit_annotator(store, study, "Ann", {"ward": ["North"]}, never=["p2"]); judging(store, study)
    limit_pairs(store, study, True)
    flags(store, study); finish_flag(store, impression)   # what is wrong with cards; dealt with
    close_duels(store, study)                             # do not wait for missing answers
    erase_person(store, study, "p2"); erase_annotator(...); erase_everybody(...)   # a receipt

    export_bundle(store, study) -> bytes; import_bundle(store, path or bytes) -> id
    replay_bundle(path or bytes), replay_study(store, study)     # compute again and compare
    back_up(path), restore(path)                          # the whole database
    answers, plans, annotators, consents, participants, beliefs, transitions     # as data frames
    assessment, assessment_text, chart_text, effect_of_help, forecast      # what the data says
    reliability, reliability_text                         # whether people can stop answering
    power, power_text                                     # whether a trial can show an effect
    reasons_text                                          # why people answered as they did
    sizes_text                                            # how much columns and seasons change
    access                                                # keys, sessions and invitations
    add_member(store, study, "ann@clinic.example", "reader"); remove_member(...); list_members(...)
    store.acting_as(actor)                                # for somebody: roles.py says what is open
    read_audit(store, study); keep_audit(store, 365); forget_audit(store)   # who did what

Episodes (plans) count from 1; epochs of an episode and duels of an epoch count from 0. A wrong
argument raises a StudyError, a wrong file a CsvError, trouble with the database a StoreError. All
are ValueErrors, and nothing has changed then.

Call `advance` whenever `plan_due` is true: the first caller makes the plan, the others return at
once, and a process that dies is replaced. A skip is an answer without weight, so a duel that
nobody can tell never holds up a study.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dopl_core.learning.learner import Learner
from dopl_core.studies import access
from dopl_core.studies.analysis.agreement import measure_agreement
from dopl_core.studies.analysis.frames import (
    annotators,
    answers,
    beliefs,
    consents,
    excluded_annotators,
    past_annotators,
    plans,
    sureness,
    transitions,
)
from dopl_core.studies.audit import (
    AUDIT_COLUMNS,
    Act,
    audit_days,
    audit_rows,
    download,
    forget_audit,
    keep_audit,
    print_list,
    read_audit,
)
from dopl_core.studies.collect import cards
from dopl_core.studies.collect.due import DUE_COLUMNS, Due, due, due_rows
from dopl_core.studies.collect.duels import answer, next_duel, skip_practice, undo
from dopl_core.studies.collect.flags import (
    LONGEST_COMMENT,
    finish_flag,
    flag,
    flagged_pair,
    flags,
)
from dopl_core.studies.collect.my_answers import (
    Arrival,
    Own,
    RoundEnd,
    agree,
    arrival,
    change,
    own_answers,
    round_end,
)
from dopl_core.studies.collect.participants import participants, skips_counted
from dopl_core.studies.collect.photos import (
    count_photos,
    keep_photos,
    photo_addresses,
    read_photos,
    remove_photos,
)
from dopl_core.studies.collect.reasons import give_reason
from dopl_core.studies.collect.views import (
    RECEIPTS,
    Ask,
    Consent,
    Finished,
    Receipt,
    Side,
    Waiting,
    browser_times,
    name_of,
    side_of,
)
from dopl_core.studies.exchange import trial_text
from dopl_core.studies.exchange.backup import Contents, back_up, restore
from dopl_core.studies.exchange.erasing import (
    Erasure,
    erase_annotator,
    erase_everybody,
    erase_person,
    withdraw,
)
from dopl_core.studies.exchange.erasure_receipt import receipt_text
from dopl_core.studies.exchange.import_export import (
    export_bundle,
    import_bundle,
    replay_bundle,
    replay_study,
)
from dopl_core.studies.exchange.retention import due_erasures, retain
from dopl_core.studies.exchange.seal import Seal, check_signature, seal_study, sign_seal
from dopl_core.studies.exchange.trial_analysis import TrialAnalysis, trial_analysis
from dopl_core.studies.members import Member, add_member, list_members, remove_member
from dopl_core.studies.model.actors import (
    ALL_STUDIES,
    COMMAND_LINE,
    NOBODY,
    ROLES,
    Actor,
    RefusedError,
    Role,
    everywhere,
)
from dopl_core.studies.model.errors import AmbiguousDatesError, CsvError, StoreError, StudyError
from dopl_core.studies.model.log_values import week_of
from dopl_core.studies.model.names import is_erased, participant_name
from dopl_core.studies.model.owner_words import (
    counted_people,
    many_weeks,
    people,
    people_first,
    the_next_week,
    this_week,
)
from dopl_core.studies.model.past_answers import PastAnswers, read_answers
from dopl_core.studies.model.past_records import Records, read_history
from dopl_core.studies.model.plurals import plural
from dopl_core.studies.model.protocol import Protocol, read_protocol_file
from dopl_core.studies.model.protocol import digest as protocol_digest
from dopl_core.studies.model.protocol import to_json as protocol_json
from dopl_core.studies.model.protocol_text import fixed_words, protocol_text
from dopl_core.studies.model.roster import (
    Columns,
    Report,
    count_states,
    guess_columns,
    look_alike,
    read_report,
    read_roster,
)
from dopl_core.studies.model.safe_csv import one_line, printable
from dopl_core.studies.model.safe_csv import write as write_csv
from dopl_core.studies.model.setting_about import SECTIONS, World
from dopl_core.studies.model.setting_rows import SETTINGS, Setting, offered_in, parse_setting
from dopl_core.studies.model.sheet import Sheet, open_sheet
from dopl_core.studies.model.spreadsheet import write_xlsx
from dopl_core.studies.model.study_config import (
    Arm,
    StudyConfig,
    engine_for,
    from_environment,
    from_roster,
)
from dopl_core.studies.operate.drafts import Draft, change_draft, read_draft
from dopl_core.studies.operate.explain import Explanation, explain
from dopl_core.studies.operate.help_lists import (
    Listed,
    OwnWords,
    WeekList,
    read_lists,
    short_list_text,
    state_words,
    why_listed,
)
from dopl_core.studies.operate.judging import (
    Judge,
    Judging,
    judging,
    limit_annotator,
    limit_pairs,
)
from dopl_core.studies.operate.judging_text import judge_text, judging_warnings
from dopl_core.studies.operate.last_report import LastReport, last_report
from dopl_core.studies.operate.lifecycle import (
    Study,
    Unreadable,
    add_answers,
    add_history,
    close_study,
    coming_config,
    create_study,
    delete_study,
    get_study,
    last_event,
    list_studies,
    list_unreadable,
    pause_study,
    reopen_study,
)
from dopl_core.studies.operate.list_changes import LONGEST_REASON, change_list
from dopl_core.studies.operate.list_csv import list_columns, list_rows
from dopl_core.studies.operate.mappings import FileKind, remember_columns, remembered_columns
from dopl_core.studies.operate.planning import advance, close_duels
from dopl_core.studies.operate.present import Helped, epoch_list, present_states
from dopl_core.studies.operate.protocols import FixedProtocol, read_protocol, trial_rules
from dopl_core.studies.operate.rehearsal import Habits, rehearse
from dopl_core.studies.operate.reported_weeks import (
    Standing,
    read_cards,
    read_week,
    report_words,
)
from dopl_core.studies.operate.reports import (
    correct,
    is_last_report,
    observe,
    read_correction,
    report_config,
)
from dopl_core.studies.operate.roster_changes import (
    change_settings,
    exclude,
    include,
    join,
    leave,
    update_people,
)
from dopl_core.studies.operate.undone_reports import undo_report
from dopl_core.studies.replay.learner_from_log import load_learner
from dopl_core.studies.store.database import Store, open_store

if TYPE_CHECKING:
    from dopl_core.studies.analysis import (
        assessment,
        assessment_text,
        chart_text,
        effect_of_help,
        forecast,
        power,
        power_text,
        reasons_text,
        reliability,
        reliability_text,
        sharing_cost,
        sizes_text,
    )
    from dopl_core.studies.operate.planner_process import Planner

# Imported at first use. The modules of analysis need pandas, which takes a second to import; the
# planner's module is also run by itself.
_ANALYSIS = (
    "assessment",
    "assessment_text",
    "chart_text",
    "effect_of_help",
    "forecast",
    "power",
    "power_text",
    "reasons_text",
    "reliability",
    "reliability_text",
    "sharing_cost",
    "sizes_text",
)

access.guard(globals())  # from here on, roles are checked


def __getattr__(name: str) -> Any:
    """Import what is imported at first use."""
    if name in _ANALYSIS:
        module = importlib.import_module(f"dopl_core.studies.analysis.{name}")
        access.guard(vars(module), name)
        return module
    if name == "Planner":
        return importlib.import_module("dopl_core.studies.operate.planner_process").Planner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
