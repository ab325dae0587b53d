"""Grammars of lark take the texts that lark itself takes."""
import pytest

from grammar_tool import ours
from lark_cases import CASES, verified

# Where we say no, and by what words: rarely used, or not to be had without Unicode's tables.
REFUSED = {
    "literal_without_regard_to_case_beyond_ascii": "for ASCII letters only",
    "regex_flags_together": "for ASCII letters only",
    "templates": "templates are not supported",
    "templates_of_templates": "templates are not supported",
    "override_and_extend": "%override is not supported here",
}
# \\w, \\d and \\s are ASCII's and ECMA-262's here, as XGrammar has them.
NARROWER = {"regex_classes_of_unicode"}


@pytest.mark.parametrize("seed", [1, 2])
def test_grammars_take_what_lark_takes_and_nothing_else(seed):
    answers = ours([("l", case["grammar"], case["yes"] + case["no"]) for case in CASES], seed)
    wrong = []
    for case, answer in zip(CASES, answers, strict=True):
        name = case["name"]
        if name in REFUSED:
            assert answer[0] == "e" and REFUSED[name] in answer[1], (name, answer)
            continue
        assert answer[0] != "e", f"{name}: {answer[1]}"
        expected = "y" * (0 if name in NARROWER else len(case["yes"]))
        given = answer[len(case["yes"]) - len(expected) if name in NARROWER else 0:]
        texts = (case["yes"] + case["no"])[-len(given):] if given else []
        for text, verdict, should in zip(texts, given, expected + "n" * len(case["no"]), strict=True):
            if (verdict == "y") != (should == "y"):
                wrong.append((name, text, verdict))
    assert not wrong
    assert len(CASES) >= 70


def test_beginnings_of_what_is_taken_may_go_on():
    cases = [case for case in CASES if case["name"] not in REFUSED | dict.fromkeys(NARROWER)]
    beginnings = [sorted({text[:i] for text in case["yes"] for i in range(len(text))}) for case in cases]
    answers = ours([("l", case["grammar"], texts) for case, texts in zip(cases, beginnings, strict=True)], 3)
    for case, texts, answer in zip(cases, beginnings, answers, strict=True):
        assert "d" not in answer, (case["name"], [text for text, verdict in zip(texts, answer) if verdict == "d"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_lark_itself_takes_these(case):
    pytest.importorskip("lark")
    verified(case)
