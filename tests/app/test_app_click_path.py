"""The path of a click, from its callback to the next comparison drawn, stays short."""

from click_path import functions_passed

from dopl_core import studies
from dopl_core.studies import access

MOST_FUNCTIONS, MOST_MODULES = 80, 16  # the sixteenth is the language: dopl_core/wording.py


def test_a_click_passes_few_functions_in_few_modules(visit, store, come_in):
    config = studies.from_environment("app_marketing", practice=False, horizon=3)
    token = access.invite(store, studies.create_study(store, config), "Ann")
    come_in()
    app = visit("annotate", invite=token)
    app.button(key="begin").click().run()
    for number in range(3):
        [button] = [b for b in app.button if b.key and b.key.startswith("left-")]
        button.click()
        if number < 2:
            app.run()
    passed = functions_passed(app.run, ("callback", "draw_board"))
    modules = {file for file, _ in passed}
    print(*(f"{file} {name}" for file, name in sorted(passed)), sep="\n")
    print(len(passed), "functions in", len(modules), "modules")
    assert len(passed) <= MOST_FUNCTIONS
    assert len(modules) <= MOST_MODULES
