"""The owner's and the researcher's pages in a real browser, from start to file."""

import csv
import io
import shutil
import zipfile
from pathlib import Path

import pytest
from acts import choice, come_in, expect_answers, open_duels, think
from playwright.sync_api import expect

from dopl_core.studies import service


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
    page.get_by_text("Without the names of those who answer").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Everything but names as a bundle").click()
    nameless = service.export_bundle(store, study, pseudonyms=True)
    assert Path(download.value.path()).read_bytes() == nameless != before

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
    come_in(ann, link)
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
    expect(page.get_by_text("It is too early to tell", exact=False)).to_be_visible()
    page.get_by_role("tab", name="How people answer").click()
    expect(page.get_by_text("20 answers so far, by 2 people")).to_be_visible()
    expect(page.get_by_text("Half of the answers took less than 0.9 s")).to_be_visible()
    expect(page.get_by_text("Left was chosen 100 % of the time")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("tabpanel").get_by_role("button", name="Data (CSV)").nth(2).click()
    assert download.value.path().read_text().startswith("person,left_share,low,high,answers\n")
    page.get_by_role("tab", name="What the learner believes").click()
    expect(page.get_by_text("Where everybody is believed to go next")).to_be_visible()


def test_a_rehearsal_fills_a_copy_and_leaves_the_study_alone(page, server, store, study):
    page.goto(f"{server.url}/studies?study={study}")
    page.get_by_role("tab", name="Rehearse").click()
    page.get_by_role("spinbutton", name="Answers").fill("8")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Rehearse on a copy").click()
    expect(page.get_by_role("heading", name="Rehearsal: CPAP adherence")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("8", timeout=30_000)
    assert service.get_study(store, study).answers == 0
