"""Comparisons in processes of their own: watched, stopped, killed, resumed, and found by the next studio."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import likely
from likely.studio.job import Reporter, run
from likely.studio.jobs import ACTIVE, MAX_QUEUED, Job, Jobs
from likely.studio.requests import BadRequest
from likely.studio.workspace import Workspace
from tests.studio.conftest import client_of

_SECONDS = 120.0  # that a process may take to start on a busy machine


def wait_for(job: Job, *statuses: str) -> None:
    end = time.monotonic() + _SECONDS
    while job.status not in statuses:
        assert time.monotonic() < end, (job.state, (job.folder / "log.txt").read_text()[-2000:])
        time.sleep(0.05)


def asked(folder, tmp_path, models=("independent",)):
    """The folder of a job, as the studio makes it."""
    place = tmp_path / "0001"
    place.mkdir()
    request = {"data": str(folder / "people.csv"), "kinds": {}, "drop": ["word"], "models": list(models), "seed": 0}
    (place / "job.json").write_text(json.dumps(request))
    return place


def test_a_job_is_a_call_of_compare(folder, tmp_path):
    place, lines = asked(folder, tmp_path), io.StringIO()
    assert run(place, lines) == "done"
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [about.get("stage") for about in said] == ["start", "fit", "score", None]
    data = likely.datasets.load(folder / "people.csv", drop=["word"])
    (mine,) = likely.compare(["independent"], data).to_dict()["entries"]
    (found,) = json.loads((place / "board.json").read_text())["entries"]
    seconds = {"fit_seconds", "score_seconds"}
    assert {key: found[key] for key in mine if key not in seconds} == {k: mine[k] for k in mine if k not in seconds}
    assert likely.load(place / found["file"]).schema_.names == data.schema.names


@pytest.mark.parametrize("last", ["done", "stopped"])
def test_a_stop_that_comes_after_the_last_word_of_a_process_does_not_lose_it(folder, tmp_path, last):
    place = asked(folder, tmp_path)
    jobs, job = Jobs(Workspace(folder, str(folder / "people.csv"))), Job(place)
    job.process = subprocess.Popen(
        [sys.executable, "-c", f"print({json.dumps(json.dumps({'status': last}))})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    job.set_status("running")
    hear = job.hear

    def hear_and_be_stopped(line):
        hear(line)
        job.set_status("stopping")

    job.hear = hear_and_be_stopped
    jobs._watch(job, job.process)
    assert job.state == {"status": last, "reason": ""}


def test_learning_curves_are_thinned_evenly(tmp_path):
    reporter = Reporter(tmp_path, None, 0, io.StringIO())
    reporter.stage("m", "fit")
    reporter.start(5000, "")
    for step in range(5000):
        reporter.update(step, {"loss": float(step)})
    curve = reporter.curves["m"]
    assert 200 <= len(curve) <= 400
    assert {later[0] - sooner[0] for sooner, later in itertools.pairwise(curve)} == {16}
    assert all(step == loss for step, loss in curve)


def test_an_interrupt_that_got_lost_is_heeded_at_the_next_report(folder, tmp_path, monkeypatch):
    place = asked(folder, tmp_path, ("independent", "mixture"))
    measured = Reporter.done

    def done(self, entry):
        measured(self, entry)
        self.is_interrupted = True  # as by a signal whose exception a callback swallowed

    monkeypatch.setattr(Reporter, "done", done)
    assert run(place, io.StringIO()) == "stopped"
    board = json.loads((place / "board.json").read_text())
    assert [entry["name"] for entry in board["entries"]] == ["Independent"]
    assert list((place / "kept").rglob("*.likely"))


def test_a_fit_that_is_stopped_in_the_middle_goes_on_from_there(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    first = rng.random(150) < 0.5
    table = {"a": first, "b": first ^ (rng.random(150) < 0.1), "c": rng.random(150) < 0.3}
    pl.DataFrame(table).cast(pl.Int8).write_csv(tmp_path / "bits.csv")
    request = {"data": str(tmp_path / "bits.csv"), "kinds": {}, "drop": [], "models": ["boltzmannmachine"], "seed": 0}
    boards, steps = {}, {}
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").write_text(json.dumps(request))
    update = Reporter.update

    def stopping(self, done, metrics):
        update(self, done, metrics)
        steps.setdefault("before", []).append(done)
        self.is_interrupted = len(steps["before"]) == 3  # as a signal does; heeded at the next report

    def counting(self, done, metrics):
        update(self, done, metrics)
        steps.setdefault("after", []).append(done)

    assert run(tmp_path / "whole", io.StringIO()) == "done"
    monkeypatch.setattr(Reporter, "update", stopping)
    assert run(tmp_path / "stopped", io.StringIO()) == "stopped"
    assert list((tmp_path / "stopped" / "kept").rglob("*.checkpoint"))
    monkeypatch.setattr(Reporter, "update", counting)
    assert run(tmp_path / "stopped", io.StringIO()) == "done"
    assert steps["after"][0] >= steps["before"][2]  # not from the beginning
    for name in ("whole", "stopped"):
        (boards[name],) = json.loads((tmp_path / name / "board.json").read_text())["entries"]
    assert boards["stopped"]["mean"] == boards["whole"]["mean"]  # to the bit


@pytest.fixture(autouse=True)
def _own_signals():
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_killed_job_leaves_the_studio_up_and_goes_on(folder, tmp_path, access):
    space = Workspace(tmp_path, str(folder / "people.csv"))
    client = client_of(space, access)
    jobs: Jobs = client.app.app.state.studio.jobs
    answer = client.post("/compare/start", data={"m-independent": "1"}, follow_redirects=False)
    assert answer.status_code == 303
    job = jobs.find("0001")
    assert job.status == "running"
    with pytest.raises(BadRequest, match="no such comparison"):
        jobs.find("0002")
    os.kill(job.process.pid, signal.SIGKILL)
    wait_for(job, "failed")
    assert "SIGKILL" in job.state["reason"]
    assert "broke off" in client.get("/compare").text

    # Another studio finds it, goes on with it, and its model is there to be used.
    other = client_of(Workspace(tmp_path, str(folder / "people.csv")), access)
    again = other.app.app.state.studio.jobs.find("0001")
    assert again.status == "failed"
    other.post("/compare/0001/resume", data={}, headers={"content-type": "application/x-www-form-urlencoded"})
    wait_for(again, "done")
    events = other.get("/compare/0001/events").text
    assert "is done" in events.split("event: end")[0].splitlines()[-2]
    assert "Independent" in events
    assert "event: end" in events
    assert other.post("/use", data={"model": "0001-0"}, follow_redirects=False).status_code == 303
    third = Workspace(tmp_path, str(folder / "people.csv"))
    assert type(third.model()).__name__ == "Independent"
    assert other.get("/models/0001-0.likely").content == (again.folder / "0.likely").read_bytes()


def test_stopping_is_an_interrupt(folder, tmp_path):
    space = Workspace(tmp_path, str(folder / "people.csv"))
    jobs = Jobs(space)
    first, second = jobs.start(["independent"], 0), jobs.start(["independent"], 1)
    assert (first.status, second.status) == ("running", "queued")  # one at a time
    jobs.stop(second.number)
    assert second.status == "stopped"
    jobs.stop(first.number)
    wait_for(first, "stopped", "failed", "done")
    assert first.status == "stopped"
    jobs.close()
    assert not any(job.status in ACTIVE for job in jobs.jobs.values())


def test_what_a_studio_left_running_is_stopped_for_the_next(folder, tmp_path):
    place = tmp_path / ".likely-studio" / "jobs" / "0007"
    place.mkdir(parents=True)
    (place / "job.json").write_text("{}")
    (place / "state.json").write_text('{"status": "running"}')
    (place.parent / "no-job").mkdir()
    jobs = Jobs(Workspace(tmp_path, str(folder / "people.csv")))
    assert {number: job.status for number, job in jobs.jobs.items()} == {"0007": "stopped"}


def test_the_queue_has_an_end(folder, tmp_path):
    jobs = Jobs(Workspace(tmp_path, str(folder / "people.csv")), n_at_once=0)
    for _ in range(MAX_QUEUED):
        jobs.start(["independent"], 0)
    with pytest.raises(BadRequest, match="stop one first"):
        jobs.start(["independent"], 0)
