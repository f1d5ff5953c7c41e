"""The owner's and the researcher's pages in a real browser, from start to file."""

import csv
import io
import shutil
import zipfile

import pytest
from acts import choice, expect_answers, open_duels, think
from playwright.sync_api import expect

from dopl_core.studies import service

ROSTER = """id,label,group,state,age,hours_1,hours_2,hours_3
p1,Ada,New,Low,61,0,1.5,0
p2,Bo,New,High,44,6,7,6.5
p3,Cy,Old,Low,58,1,0,0
p4,Di,Old,High,39,5,5,7
"""


def test_a_roster_study_goes_from_csv_to_the_second_epochs_list(page, server, tmp_path):
    roster = tmp_path / "ward.csv"
    roster.write_text(ROSTER)
    page.goto(f"{server.url}/studies")
    page.get_by_role("tab", name="New study").click()
    page.get_by_role("radio", name="My own roster").click()
    page.locator("input[type=file][accept*=csv]").set_input_files(roster)
    expect(page.get_by_role("textbox", name="States, from worst to best")).to_have_value(
        "Low\nHigh"
    )
    expect(page.locator(".st-key-card-preview-bare-left")).to_contain_text("Ada")
    expect(page.locator(".st-key-card-preview-bare-left .dopl-bar")).to_have_count(3)
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("heading", name="ward")).to_be_visible()
    expect(page.get_by_text("2 of 4 to help now")).to_be_visible()

    page.get_by_role("button", name="Answer duels").click()
    page.get_by_role("button", name="Skip practice").click()
    expect_answers(page, 0)
    think(page)
    choice(page, "left").click()
    expect(page.get_by_text("when the owner has reported")).to_be_visible()

    page.get_by_role("link", name="Studies").click()
    page.get_by_role("button", name="Open").first.click()
    page.get_by_role("tab", name="Report").click()
    page.get_by_role("button", name="Report these states").click()
    expect(page.get_by_text("by plan 2")).to_be_attached()
    page.get_by_role("tab", name="Whom to help now").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="This list (CSV)").click()
    listed = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert len(listed) == 2
    assert set(listed[0]) == {"id", "name", "group", "state now", "why"}

    report = tmp_path / "report.csv"
    report.write_text("id,state,hours_3\np1,High,7\np2,High,6\np3,Low,0\np4,High,5\n")
    page.get_by_role("button", name="Answer duels").click()
    expect(choice(page, "left")).to_be_visible()
    page.go_back()
    page.get_by_role("tab", name="Report").click()
    page.locator("input[type=file][accept*=csv]").last.set_input_files(report)
    page.get_by_role("button", name="Report this file").click()
    expect(page.get_by_text("by plan 2")).to_be_attached()  # a duel is still open


def test_a_file_that_cannot_be_used_is_refused_in_words(page, server, tmp_path):
    roster = tmp_path / "bad.csv"
    roster.write_text("id,state\np1,Low\np1,High\n")
    page.goto(f"{server.url}/studies")
    page.get_by_role("tab", name="New study").click()
    page.get_by_role("radio", name="My own roster").click()
    page.locator("input[type=file][accept*=csv]").set_input_files(roster)
    expect(page.get_by_text('bad.csv row 3: id "p1" is there already, in row 2')).to_be_visible()
    expect(page.get_by_role("button", name="Create the study")).to_have_count(0)


def test_a_study_that_was_exported_deleted_and_imported_is_the_same(page, server, store, tmp_path):
    study = service.create_study(store, service.from_environment("cpap", practice=False))
    open_duels(page, server, study)
    for count in range(1, 4):
        think(page)
        page.keyboard.press("ArrowLeft")
        expect_answers(page, count)
    before = service.export_bundle(store, study)

    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Data").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Everything as a bundle").click()
    bundle = tmp_path / "bundle.zip"
    download.value.save_as(bundle)
    assert bundle.read_bytes() == before
    assert "duels.csv" in zipfile.ZipFile(bundle).namelist()

    page.get_by_text("Delete this study").click()
    page.get_by_text("Yes, remove it").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    with pytest.raises(service.StudyError):
        service.get_study(store, study)

    page.get_by_role("tab", name="Import").click()
    page.locator("input[type=file][accept*=zip]").set_input_files(bundle)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="CPAP adherence")).to_be_visible()
    assert service.export_bundle(store, study) == before
    open_duels(page, server, study)
    expect_answers(page, 3)


def test_a_simulation_runs_beside_the_app_and_ends_in_a_downloaded_csv(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("6")
    page.get_by_role("spinbutton", name="Seeds").fill("1")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("of 12 episodes")).to_be_visible()
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("button", name="Try it now")).to_be_visible()
    page.get_by_role("link", name="Simulate").click()
    expect(page.get_by_text("finished: 12 of 12 episodes")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("epochs DOPL gains")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Rows (CSV)").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert len(rows) == 12
    assert {row["learner"] for row in rows} == {"dopl", "random"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture (PNG)").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_simulation_can_be_stopped_and_gone_on_with(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("3000")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Stop").click(timeout=30_000)
    expect(page.get_by_text("stopped:")).to_be_visible()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("running:")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped:")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("18000 episodes")).to_have_count(0)
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_a_simulation_that_is_gone_when_it_is_to_go_on_is_said_in_words(page, server):
    page.goto(f"{server.url}/simulate")
    page.get_by_role("spinbutton", name="Episodes (plans)").fill("3000")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Stop").click(timeout=30_000)
    expect(page.get_by_text("stopped:")).to_be_visible()
    newest = max(path for path in (server.folder / "runs").iterdir() if path.is_dir())
    shutil.rmtree(newest)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("run.json: No such file")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_an_invite_is_made_opens_one_page_only_and_can_be_revoked(page, browser, server, study):
    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Invite").click()
    page.get_by_label("Name of the person to invite").fill("Ann")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("code", has_text="invite=").inner_text()
    assert link.startswith(f"{server.url}/annotate?invite=")
    ann = browser.new_context().new_page()
    ann.goto(link)
    expect_answers(ann, 0)
    expect(ann.get_by_role("navigation")).to_have_count(0)
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("revoked")).to_be_visible()
    think(ann)
    choice(ann, "left").click()
    expect(ann.get_by_text("This link opens nothing any more.")).to_be_visible()
    ann.context.close()


def test_insights_say_what_was_found(page, server, store, study):
    for name in ("Ann", "Bo"):
        for _ in range(10):
            ask = service.next_duel(store, study, name)
            service.answer(store, ask.impression, "left", response_ms=900, too_fast_ms=0)
    page.goto(f"{server.url}/insights?study={study}")
    expect(page.get_by_text("20 answers so far, by 2 people")).to_be_visible()
    expect(page.get_by_text("Half of the answers took less than 0.9 s")).to_be_visible()
    expect(page.get_by_text("Left was chosen 100% of the time")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Data (CSV)").nth(2).click()
    assert download.value.path().read_text().startswith("person,left_share,low,high,answers\n")
    page.get_by_role("tab", name="What the learner believes").click()
    expect(page.get_by_text("Too few moves were seen")).to_be_visible()


def test_a_rehearsal_fills_a_copy_and_leaves_the_study_alone(page, server, store, study):
    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Rehearse").click()
    page.get_by_role("spinbutton", name="Answers").fill("8")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Rehearse on a copy").click()
    expect(page.get_by_role("heading", name="Rehearsal: CPAP adherence")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("8", timeout=30_000)
    assert service.get_study(store, study).answers == 0
