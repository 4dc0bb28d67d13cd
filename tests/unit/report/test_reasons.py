"""Every code has a sentence, and a sentence hides no fact."""

from __future__ import annotations

import string

import pytest

from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.report.reasons import _TEXTS, text_of, texts_of


@pytest.mark.parametrize("code", list(Code), ids=lambda code: str(code.value))
def test_every_code_has_a_sentence(code: Code) -> None:
    assert _TEXTS[code]
    text = text_of(Reason(code))
    assert text
    fields = {name for _, name, _, _ in string.Formatter().parse(_TEXTS[code][-1]) if name}
    assert ("?" in text) == bool(fields)


def test_no_sentence_without_a_code() -> None:
    assert set(_TEXTS) == set(Code)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param(
            Reason.of(Code.TOO_FEW_DEVICES, Subject("request", "gpu"), wanted=8, found=4),
            "request gpu: 4 of 8 devices",
            id="subject first",
        ),
        pytest.param(
            Reason.of(Code.TOO_FEW_DEVICES, wanted=8, found=4, expressions=("a", "b")),
            "4 of 8 devices pass a, b",
            id="the most telling template",
        ),
        pytest.param(
            Reason.of(Code.PREPAID, block="november", zone="us-east-1a"),
            "prepaid by capacity block november (zone us-east-1a)",
            id="other facts in brackets",
        ),
        pytest.param(Reason.of(Code.PREPAID), "prepaid by capacity block ?", id="a missing fact shows"),
        pytest.param(Reason.of(Code.TOO_FEW_DEVICES, wanted=1, found=0, expressions=()), "0 of 1 devices", id="empty"),
        pytest.param(
            Reason.of(Code.INSUFFICIENT_RESOURCE, resource="cpu", wanted=64000, free=15890),
            "Insufficient cpu: 64 requested, 15.89 free",
            id="cores",
        ),
        pytest.param(
            Reason.of(Code.INSUFFICIENT_RESOURCE, resource="memory", wanted=2**39, free=3 * 2**29),
            "Insufficient memory: 512Gi requested, 1.5Gi free",
            id="bytes",
        ),
        pytest.param(
            Reason.of(Code.VOLUME_UNBOUND, claim="ns/data", missing_claim="not there"),
            "PersistentVolumeClaim ns/data is not there: create it",
            id="no volume claim",
        ),
        pytest.param(
            Reason.of(Code.VOLUME_UNBOUND, claim="ns/data", missing_volume="nfs-pv"),
            "PersistentVolumeClaim ns/data is bound, and its volume is not there: give PersistentVolume nfs-pv",
            id="no volume",
        ),
        pytest.param(
            Reason.of(Code.VOLUME_UNBOUND, claim="ns/data", immediate="does not wait for a pod"),
            "PersistentVolumeClaim ns/data is not bound, and its StorageClass does not wait for a pod",
            id="volume claim that binds at once",
        ),
        pytest.param(
            Reason.of(Code.INSUFFICIENT_RESOURCE, resource="pods", wanted=1, free=0),
            "Insufficient pods: 1 requested, 0 free",
            id="count",
        ),
    ],
)
def test_text(reason: Reason, expected: str) -> None:
    assert text_of(reason) == expected


def test_what_is_said_of_several_devices_is_said_once() -> None:
    devices = tuple(
        Reason.of(
            Code.RUNTIME_ATTRIBUTE, Subject("device", f"gpu.nvidia.com/future-node/gpu-{index}"), attributes=("uuid",)
        )
        for index in range(3)
    )
    other = Reason.of(Code.NO_PRICE)
    assert texts_of((*devices, other)) == (
        "device gpu.nvidia.com/gpu-0 and 2 more: depends on uuid: known only once the node runs; " + text_of(other)
    )


@pytest.mark.parametrize("number", [10**31, 10**5000, -(10**5000)], ids=["31 digits", "5000 digits", "negative"])
def test_numbers_that_nobody_reads_are_shortened(number: int) -> None:
    """An API server takes cpu: 1e1000, which no float holds; Python writes no integer of more than 4,300 digits."""
    text = text_of(
        Reason.of(Code.INSUFFICIENT_RESOURCE, Subject("pod", "a/b"), resource="cpu", wanted=number, free=1000)
    )
    assert "more than 2^" in text
    assert len(text) < 100


def test_what_others_wrote_makes_no_second_line() -> None:
    """Events and conditions have such sentences, and `kubectl get events` prints line breaks as they are."""
    reason = Reason.of(
        Code.PROVISIONING_REQUEST, Subject("pod", "a/b"), missing="x\ndefault  1s  Warning  Evil", annotation="c"
    )
    assert text_of(reason).startswith("pod a/b: names ProvisioningRequest x\\ndefault  1s")
