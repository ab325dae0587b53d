"""Counts and the last page: from reports of pytest and GoogleTest, and from reports that are not there."""

import outcome

PYTEST = """<testsuites><testsuite><testcase classname="a" name="one" time="0.5"/><testcase classname="a" name="two" time="2"><skipped/></testcase>
<testcase classname="a" name="three" time="1"><failure message="m">text</failure></testcase>
<testcase classname="a" name="four"><error message="set-up"/></testcase></testsuite></testsuites>"""
GTEST = """<testsuites><testsuite><testcase name="One" status="run" result="completed" time="0.25" classname="A"/>
<testcase name="Two" status="notrun" result="suppressed" time="0" classname="A"/>
<testcase name="Three" status="run" result="skipped" time="0" classname="A"><skipped/></testcase></testsuite></testsuites>"""


def found_of(tmp_path, text, status):
    said = []
    found = outcome.Outcome(said.append)
    if text is not None:
        (tmp_path / "r.xml").write_text(text)
    (tmp_path / "r.log").write_text("the last words\n")
    cases = found.takes_report(tmp_path / "r.xml", status, "r")
    return found, cases, said


def test_passed_failed_and_skipped_cases_are_counted(tmp_path):
    found, cases, said = found_of(tmp_path, PYTEST, 1)
    assert (found.passed, found.failed) == (1, 2)
    assert "  r: 1 skipped" in said
    assert [case.state for case in cases] == ["passed", "skipped", "failed", "failed"]


def test_gtests_cases_that_did_not_run_are_not_counted_as_passed(tmp_path):
    found, cases, _ = found_of(tmp_path, GTEST, 0)
    assert (found.passed, found.failed) == (1, 0)


def test_a_bad_status_without_a_failed_case_is_one_failure(tmp_path):
    for text in (GTEST, "<testsuites>", None):
        found, _, _ = found_of(tmp_path, text, -6)
        assert found.failed == 1
        assert "the last words" in found.last_page(1, 1)
        (tmp_path / "r.xml").unlink(missing_ok=True)


def test_the_last_page_ends_with_the_count_behind_what_failed_and_what_did_not_run(tmp_path):
    found, _, _ = found_of(tmp_path, PYTEST, 1)
    found.leaves_out("fuzz: not its turn")
    page = found.last_page(3, 5)
    assert page.splitlines()[-1] == "1 passed, 2 failed"
    assert page.index("== times") < page.index("fuzz: not its turn") < page.index("a.three") < page.index("1 passed, 2 failed")


def test_the_slowest_ten_are_shown(tmp_path):
    said = []
    found = outcome.Outcome(said.append)
    found.shows_slowest([outcome.Case(f"c{i}", float(i), "passed") for i in range(20)])
    assert said[0].startswith("  slowest: c19 19.0 s") and said[0].count(".0 s") == 10
