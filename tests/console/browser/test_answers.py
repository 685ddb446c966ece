"""What forms are answered with, in a browser: the rules of every page hold there too, and nothing moves while somebody types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from cluster.client.errors import Unreachable
from console.access.entrance import Entrance
from console.access.hosts import Hosts
from console.access.rights import Rights
from console.access.sessions import Sessions
from console.access.sign_in import SignIn
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import application
from console.server.query import MOST_FORM
from console.server.rendering import environment
from telemetry import log
from tests.console.access.test_rights import Answers
from tests.console.access.test_sign_in import GOOD, Known
from tests.support.browser.axe import violations
from tests.support.browser.pages import WIDTHS, Watched
from tests.support.browser.served import listening, served
from tests.support.browser.webdriver import Browser
from tests.support.calls.server_process import until
from tests.support.console.asked import Somebody
from tests.support.console.worlds import world
from tests.support.counts import PROVE, only_in_prove
from tests.support.recorded import eks

POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  %s
  containers:
  - name: c
    image: registry.example/c:1
    resources: {limits: {nvidia.com/gpu: %s}}
"""
DENIED = POD % ("denied", "ml-team", "terminationGracePeriodSeconds: 30", '"1.5"')
TYPED = {
    "admitted": POD % ("fine", "ml-team", "restartPolicy: Never", "1"),
    "denied": DENIED,
    "two": f"{DENIED}---\n{POD % ('other', 'ml-team', 'restartPolicy: Never', '2')}",
    "without-a-pod": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    "broken": "kind: Pod\n  spec: [",
    "nothing": " ",
}
LOOKS = [(390, "dark"), *([(1440, "light")] if PROVE else [])]
SHIFTING = """
window.shifts = [];
new PerformanceObserver(list => window.shifts.push(...list.getEntries().map(one => one.value))).observe({type: 'layout-shift'});
"""


@pytest.fixture(scope="module")
def job(browser: Browser) -> Iterator[Watched]:
    """My job, over a recorded cluster."""
    with served(Fixed(world(eks.objects())), Somebody()) as base:
        yield Watched(browser, base)


@pytest.mark.parametrize("what", TYPED if PROVE else ("denied",))
def test_answers_of_the_playground_break_no_rule(job: Watched, axe_core: str, what: str) -> None:
    """WCAG 2.2 AA, nothing asked elsewhere, as wide as the window: of the page that the form leads to, without a script."""
    wrong: dict[object, list[str]] = {}
    for width, scheme in LOOKS:
        job.browser.look(width, scheme)
        job.open("/job")
        job.browser.run("document.querySelector('[name=manifest]').value = arguments[0]", TYPED[what])
        job.browser.run("document.getElementById('job-form').submit()")
        until(lambda: "#changed" in job.browser.url and job.browser.find_all("#changed"), "the answer")
        if TYPED[what].strip():
            assert job.browser.find_all("#changed section"), what
        wrong[width] = [*job.asked_elsewhere(), *job.complaints(), *violations(job.browser, axe_core), *job.too_wide(WIDTHS[:3])]
    assert {look: found for look, found in wrong.items() if found} == {}


def test_nothing_moves_while_somebody_types(job: Watched, axe_core: str) -> None:
    """The verdict on what is in the field comes below it: the field, and all above it, stays where it is."""
    job.browser.look(1440)
    job.open("/job")
    job.browser.run(SHIFTING)
    field = job.browser.find("textarea[name=manifest]")
    before = job.browser.run("return arguments[0].getBoundingClientRect().top + scrollY", field.reference)
    for verdict, text in ((".bad", TYPED["broken"]), (".bad", DENIED), (".verdict:not(.bad)", TYPED["admitted"])):
        field.clear()
        field.type(text)
        until(lambda found=verdict: job.browser.find_all(f"#changed {found}"), "the verdict to change")
        assert job.browser.run("return arguments[0].getBoundingClientRect().top + scrollY", field.reference) == before
    assert job.browser.run("return window.shifts.reduce((all, one) => all + one, 0)") < 0.1, "a good shift by the web's own measure"
    assert [*job.asked_elsewhere(), *job.complaints(), *violations(job.browser, axe_core)] == []


@only_in_prove
def test_an_object_and_a_change_of_it_are_judged_side_by_side(job: Watched, axe_core: str) -> None:
    """What an object of the cluster comes to stays on its page when its manifest is changed below; no name is there twice.

    ``make test`` has both without a browser (``tests/console/job``)."""
    job.browser.look(1440)
    job.open("/job")
    link = job.browser.run("return document.querySelector('a[href*=\"/job?pod=\"]').getAttribute('href')")
    job.open(link)
    first = job.browser.find("#answer .verdict").text
    job.browser.find("textarea[name=manifest]").type("# looked at\n")
    until(lambda: job.browser.find_all("#changed .verdict"), "the verdict on the field")
    assert job.browser.find("#answer .verdict").text == first
    twice = "const ids = [...document.querySelectorAll('[id]')].map(one => one.id); return ids.filter((id, at) => ids.indexOf(id) !== at)"
    assert job.browser.run(twice) == []
    assert violations(job.browser, axe_core) == []


def test_the_page_to_sign_in_breaks_no_rule(browser: Browser, axe_core: str) -> None:
    """Empty, after a token that nobody knows, and while the API server is away."""
    people = Known()

    def made(base: str) -> object:
        gate = SignIn(people, Rights(Answers(set())), Sessions(3600), Hosts([], base), ["/"])
        return application(Fixed(world(eks.objects())), gate, SCREENS, Entrance(gate, environment()).routes(), gate.hosts.origins)

    with listening(made) as base:  # type: ignore[arg-type]
        watched = Watched(browser, base)
        wrong: dict[object, list[str]] = {}
        for width, scheme in LOOKS:
            for token, gone in (("", False), ("nobody", False), (GOOD, True)):
                browser.look(width, scheme)
                people.gone = gone
                watched.open("/login")
                if token:
                    browser.find("[name=token]").type(token)
                    browser.find("form button").click()
                    until(lambda: browser.find_all("[role=alert]"), "what was wrong")
                wrong[width, token] = [*watched.complaints(), *violations(browser, axe_core), *watched.too_wide(WIDTHS[:3])]
    assert {look: found for look, found in wrong.items() if found} == {}


@dataclass(frozen=True)
class Faulty(Somebody):
    """One for whom the next answers are not what is wanted."""

    fault: list[Exception | Response] = field(default_factory=list)

    async def admit(self, request: Request) -> Somebody | Response:
        for one in self.fault:
            if isinstance(one, Exception):
                raise one
            return one
        return self


WRONG: dict[str, tuple[str, Exception | Response | None]] = {
    "too large": (f"{TYPED['admitted']}# {'x' * MOST_FORM}", None),
    "API server gone": (TYPED["denied"], Unreachable("It has not answered permission checks since 08:00:00 UTC")),
    "signed out": (TYPED["denied"], PlainTextResponse("This address was already opened, or its cookie has expired.\n", 401)),
    "mistake": (TYPED["denied"], RuntimeError()),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_what_was_typed_is_seen(browser: Browser, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In place of a verdict on another text, which would be taken for its own; the next text is judged again."""
    text, fault = WRONG[what]
    visitor = Faulty()
    log.to(lambda line: None)
    with served(Fixed(world(eks.objects())), visitor) as base:
        watched = Watched(browser, base)
        watched.open("/job")
        _type(watched, TYPED["admitted"])
        until(lambda: "Admitted" in browser.find("#changed").text, "the verdict")
        visitor.fault.extend([fault] if fault else [])
        _type(watched, text)
        until(lambda: browser.find_all("#changed > .stale"), "what is wrong")
        assert "Admitted" not in browser.find("#changed").text
        visitor.fault.clear()
        _type(watched, TYPED["denied"])
        until(lambda: "Denied" in browser.find("#changed").text, "the next verdict")


def test_a_console_that_is_gone_is_told(browser: Browser) -> None:
    """A page that is open says since when nothing answers."""
    with served(Fixed(world(eks.objects())), Somebody()) as base:
        watched = Watched(browser, base)
        watched.open("/job")
    _type(watched, TYPED["admitted"])
    until(lambda: "has not answered since" in browser.find("footer").text, "the page to say so")


def _type(watched: Watched, text: str) -> None:
    """All at once, as somebody pastes it."""
    watched.browser.run(
        "const field = document.getElementById('manifest'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        text,
    )
