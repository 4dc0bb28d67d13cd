"""What the process answers over HTTP, to whom, and what a page must never do."""

from __future__ import annotations

import base64
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.serve.access import RequestAuthorizer
from autoscaler.serve.health import Heartbeat, Sight
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick, health_app, metrics_app, page_app
from tests.desk import POOL, planned
from tests.unit.serve.browser import Browser
from tests.unit.serve.reviews import Grant, ReviewingServer, Users

HOSTILE = '<script>alert("x")</script>'
USERS = Users(
    tokens={"admin-token": "admin", "team-token": "team", "nobody-token": "nobody", "one-token": "one"},
    grants={
        "admin": (Grant("list"), Grant("get")),
        "team": (Grant("list", "team-a"), Grant("get", "team-a")),
        "one": (Grant("get", "team-a", "train"),),
    },
)
SNAPSHOT = Snapshot(
    pods=(
        Pod("team-a", "serve"),
        Pod("team-a", "train", unscheduled="Unschedulable", unscheduled_why=HOSTILE),
        Pod("team-b", "secret-project"),
    ),
    pools=(POOL,),
)
PLAN = Plan(
    launches=(planned("n1", pods=("team-a/serve", "team-b/secret-project")),),
    placements=(
        Placement("team-a/serve", Target.NEW, "n1"),
        Placement("team-b/secret-project", Target.NEW, "n1"),
    ),
    left_out=(
        LeftOut(
            "team-a/train",
            LeftOutVerdict.FATAL,
            (Reason.of(Code.CLASS_NOT_FOUND, Subject(HOSTILE), device_class="gpu"),),
        ),
    ),
    usd_per_hour=Decimal("55.04"),
)


@pytest.fixture
def api() -> ReviewingServer:
    return ReviewingServer(VirtualClock(), USERS)


@pytest.fixture
def latest() -> LatestTick:
    latest = LatestTick()
    latest.set(SNAPSHOT, PLAN, EPOCH)
    return latest


@pytest.fixture
def page(api: ReviewingServer, latest: LatestTick) -> Browser:
    return Browser(page_app(latest, RequestAuthorizer(api), cluster="prod & co", holder=lambda: "replica-2"))


def bearer(user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {user}-token"}


def basic(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


# -- who may read what


@pytest.mark.parametrize(
    ("path", "user", "status"),
    [
        pytest.param("/", "admin", 200, id="all pods"),
        pytest.param("/", "team", 403, id="all pods, with rights in one namespace"),
        pytest.param("/?namespace=team-a", "team", 200, id="own namespace"),
        pytest.param("/?namespace=team-b", "team", 403, id="foreign namespace"),
        pytest.param("/?namespace=team-a", "one", 403, id="own namespace, but only one pod"),
        pytest.param("/explain/team-a/train", "one", 200, id="one pod"),
        pytest.param("/explain/team-a/serve", "one", 403, id="another pod"),
        pytest.param("/explain/team-a/train", "nobody", 403, id="no right at all"),
        pytest.param("/explain/team-b/missing", "team", 403, id="a missing pod of a foreign namespace"),
        pytest.param("/explain/team-a/missing", "team", 404, id="a missing pod of one's own"),
    ],
)
def test_rights_are_those_on_pods(page: Browser, path: str, user: str, status: int) -> None:
    assert page.get(path, headers=bearer(user)).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"Authorization": "Bearer"}, id="no token"),
        pytest.param({"Authorization": "Bearer stolen"}, id="unknown token"),
        pytest.param({"Authorization": f"Bearer {'x' * 20_000}"}, id="endless token"),
        pytest.param({"Authorization": "Digest admin-token"}, id="another scheme"),
        pytest.param({"Authorization": "Basic !!!"}, id="no base64"),
        pytest.param({"Authorization": f"Basic {base64.b64encode(bytes([255, 254])).decode()}"}, id="no text"),
        pytest.param(basic("admin-token"), id="no password"),
        pytest.param(basic("admin:wrong"), id="wrong password"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/explain/team-a/train", "/explain/none/none"])
def test_strangers_learn_nothing(page: Browser, path: str, headers: dict[str, str]) -> None:
    answer = page.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert "kubectl create token" in answer.text
    assert "team-a" not in answer.text
    assert "train" not in answer.text


def test_a_browser_gives_the_token_as_password(page: Browser) -> None:
    assert page.get("/", headers=basic("whoever:admin-token")).status_code == 200


def test_what_is_forbidden_says_what_to_ask_for(page: Browser) -> None:
    answer = page.get("/explain/team-b/secret-project", headers=bearer("team"))
    assert "team may not get pod team-b/secret-project" in answer.text
    assert "kubectl auth can-i get pods -n team-b" in answer.text
    everywhere = page.get("/", headers=bearer("team"))
    assert "team may not list pods" in everywhere.text
    assert "/?namespace=" in everywhere.text


def test_reviews_carry_what_the_api_server_said_of_the_user(page: Browser, api: ReviewingServer) -> None:
    page.get("/explain/team-a/train", headers=bearer("team"))
    token, access = api.asked
    assert token == {"spec": {"token": "team-token"}}
    assert access["spec"] == {
        "user": "team",
        "uid": "",
        "groups": ["system:authenticated"],
        "extra": {},
        "resourceAttributes": {
            "verb": "get",
            "resource": "pods",
            "version": "v1",
            "namespace": "team-a",
            "name": "train",
        },
    }


def test_without_the_right_to_ask_nobody_is_let_in(page: Browser, api: ReviewingServer) -> None:
    api.delegated = False
    answer = page.get("/", headers=bearer("admin"))
    assert answer.status_code == 503
    assert "system:auth-delegator" in answer.text


# -- what is on the page


def test_the_page_tells_pods_pools_and_proposals(page: Browser) -> None:
    text = page.get("/", headers=bearer("admin")).text
    assert "prod &amp; co" in text
    assert 'href="/explain/team-b/secret-project"' in text
    assert "p5.48xlarge in us-east-1a (on-demand)" in text
    assert "55.04" in text
    assert "As of 2026-01-01 00:00:00 UTC" in text
    assert "<td>gpu</td>" in text


def test_pods_of_other_namespaces_are_counted_and_not_named(page: Browser) -> None:
    text = page.get("/?namespace=team-a", headers=bearer("team")).text
    assert "team-a/serve, 1 more" in text
    assert "secret-project" not in text


def test_a_pod_is_explained(page: Browser) -> None:
    text = page.get("/explain/team-a/serve", headers=bearer("team")).text
    assert "a node is being launched: p5.48xlarge in us-east-1a (on-demand)" in text
    train = page.get("/explain/team-a/train", headers=bearer("team")).text
    assert "kube-scheduler fails on it" in train
    assert "there is no DeviceClass gpu" in train
    assert "Unschedulable" in train


@pytest.mark.parametrize(("path", "user"), [("/", "nobody"), ("/", "unknown"), ("/explain/a/missing", "admin")])
def test_a_notice_leaves_the_namespace_empty(page: Browser, path: str, user: str) -> None:
    """Jinja has a global of the name `namespace`, which is no namespace of Kubernetes."""
    text = page.get(path, headers=bearer(user)).text
    assert 'name="namespace" value=""' in text
    assert "jinja" not in text


@pytest.mark.parametrize("path", ["/", "/explain/team-a/train", "/?namespace=%3Cscript%3Ealert(1)%3C/script%3E"])
def test_what_others_wrote_is_text(page: Browser, path: str) -> None:
    text = page.get(path, headers=bearer("admin")).text
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("path", "user"),
    [("/", "admin"), ("/", "nobody"), ("/explain/team-a/train", "admin"), ("/style.css", "nobody"), ("/", "unknown")],
)
def test_pages_load_nothing_foreign_and_stay_in_no_cache(page: Browser, path: str, user: str) -> None:
    answer = page.get(path, headers=bearer(user))
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "token" not in answer.text or "kubectl create token" in answer.text or path == "/style.css"
    assert "-token" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(page: Browser, method: str) -> None:
    assert page.request(method, "/", headers=bearer("admin")).status_code == 405


def test_a_replica_that_waits_says_who_acts(api: ReviewingServer) -> None:
    waiting = Browser(page_app(LatestTick(), RequestAuthorizer(api), holder=lambda: "replica-2"))
    answer = waiting.get("/", headers=bearer("admin"))
    assert answer.status_code == 503
    assert "replica-2 acts" in answer.text


# -- probes and metrics


def test_probes_follow_the_heartbeat() -> None:
    clock = VirtualClock()
    heartbeat = Heartbeat(clock)
    probes = Browser(health_app(heartbeat, Sight()))
    assert (probes.get("/healthz").status_code, probes.get("/readyz").status_code) == (200, 503)
    heartbeat.ready()
    heartbeat.expect(within=10, doing="a round of the loop")
    clock.advance(timedelta(seconds=10))
    assert (probes.get("/healthz").status_code, probes.get("/readyz").status_code) == (200, 200)
    clock.advance(timedelta(seconds=5))
    late = probes.get("/healthz")
    assert (late.status_code, late.text) == (503, "a round of the loop: overdue for 5 s")
    heartbeat.expect(within=60, doing="resting")
    assert probes.get("/healthz").status_code == 200
    heartbeat.unready()
    assert probes.get("/readyz").status_code == 503


def test_a_process_lives_only_with_its_threads() -> None:
    heartbeat, alive = Heartbeat(VirtualClock()), {"election": True, "timetable": True}
    for thread in alive:
        heartbeat.depend_on(thread, partial(alive.__getitem__, thread))
    probes = Browser(health_app(heartbeat, Sight()))
    assert probes.get("/healthz").text == "ok"
    alive["timetable"] = False
    answer = probes.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "the thread timetable has ended")


def test_a_round_that_goes_on_asking_is_not_stuck() -> None:
    clock = VirtualClock()
    heartbeat = Heartbeat(clock)
    heartbeat.expect(within=300, doing="a round of the loop")
    for _ in range(10):
        clock.advance(timedelta(seconds=130))
        heartbeat.progress(within=300)
    assert heartbeat.problem == ""
    clock.advance(timedelta(seconds=301))
    assert heartbeat.problem == "a round of the loop: overdue for 1 s"


def test_a_request_cuts_no_rest_short() -> None:
    clock = VirtualClock()
    heartbeat = Heartbeat(clock)
    heartbeat.expect(within=900, doing="standing by")
    heartbeat.progress(within=300)
    clock.advance(timedelta(seconds=800))
    assert heartbeat.problem == ""


def test_who_sees_the_cluster_as_it_was_is_alive_and_not_ready() -> None:
    heartbeat, ages = Heartbeat(VirtualClock()), {"pods": 300.0, "nodes": 20.0, "daemonsets.apps": 12.0}
    probes = Browser(health_app(heartbeat, Sight(lambda: ages, timedelta(minutes=5))))
    assert probes.get("/readyz").text == "the cluster was not read yet"
    heartbeat.ready()
    assert probes.get("/readyz").text == "ok"
    ages |= {"pods": 301.0, "daemonsets.apps": 400.2}
    answer = probes.get("/readyz")
    assert answer.status_code == 503
    assert answer.text == (
        "daemonsets.apps: no event, bookmark or list for 400 s; pods: no event, bookmark or list for 301 s"
    )
    assert probes.get("/healthz").status_code == 200


def test_the_age_of_each_resource_is_measured() -> None:
    recorder = Recorder(VirtualClock(), version="1")
    recorder.follows(lambda: {"pods": 2.5, "daemonsets.apps": 7.0})
    text = Browser(metrics_app(recorder.registry)).get("/metrics").text
    assert 'foreslice_informer_age_seconds{resource="pods"} 2.5' in text
    assert 'foreslice_informer_age_seconds{resource="daemonsets.apps"} 7.0' in text


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain", id="plain text"),
        pytest.param("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", id="OpenMetrics"),
    ],
)
def test_metrics_are_served_as_the_scraper_likes(accept: str, content_type: str) -> None:
    recorder = Recorder(VirtualClock(), version="1.2.3")
    answer = Browser(metrics_app(recorder.registry)).get("/metrics", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith(content_type)
    assert 'foreslice_build_info{version="1.2.3"} 1.0' in answer.text
