"""Subjects of reasons: the text that is printed and stored, and how it is read again."""

from __future__ import annotations

import pytest

from autoscaler.model.reason import NO_SUBJECT, Subject

SUBJECTS = [
    pytest.param(Subject("pool", "gpu"), "pool gpu", id="cluster-scoped"),
    pytest.param(Subject.claim("default/gpu"), "claim default/gpu", id="claim"),
    pytest.param(Subject.claim("default/gpu", "one"), "claim default/gpu, request one", id="a-request-of-a-claim"),
    pytest.param(Subject("request", "one"), "request one", id="a-request-whose-claim-is-known"),
    pytest.param(
        Subject("pod", "default/p", Subject("claim", "gpu")), "pod default/p, claim gpu", id="a-claim-of-a-pod"
    ),
    pytest.param(NO_SUBJECT, "", id="none"),
]


@pytest.mark.parametrize(("subject", "text"), SUBJECTS)
def test_the_stored_text_of_a_subject_is_read_as_the_same_subject(subject: Subject, text: str) -> None:
    assert (str(subject), Subject.parse(text)) == (text, subject)
    assert bool(subject) == bool(text)


def test_a_subject_counts_the_others_with_the_same_reason() -> None:
    assert str(Subject("device", "gpu-0", others=2)) == "device gpu-0 and 2 more"


def test_a_renamed_subject_keeps_names_that_only_begin_alike() -> None:
    names = {"default/a": "default/b"}
    assert Subject.claim("default/a", "gpu").renamed(names) == Subject.claim("default/b", "gpu")
    assert Subject.claim("default/a-2", "gpu").renamed(names) == Subject.claim("default/a-2", "gpu")
