"""The Compare view: start, watch, stop and resume comparisons; the leaderboard as it grows; a model to look through."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from likely.contract.evidence import SIGNS
from likely.leaderboard.wording import number, seconds
from likely.storage import registry
from likely.studio.drawing.charts import curve, intervals
from likely.studio.drawing.markup import Markup, tag
from likely.studio.jobs import ACTIVE, Job
from likely.studio.requests import BadRequest, form, query, whole
from likely.studio.security import LOAD
from likely.studio.shell import Studio, fragment, loading_lines, page, python, state

_DEFAULT = ("independent", "mixture", "circuit")
_DEFAULT_OF_TEXT = ("ngram",)
_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_BETWEEN_BEATS = 10.0
_WORDS = {
    "queued": "waits for its turn",
    "running": "is running",
    "stopping": "is stopping; it keeps its checkpoint",
    "stopped": "was stopped; resume goes on from what it finished",
    "failed": "broke off",
    "done": "is done",
}
_STAGES = {"fit": "fitting", "score": "scoring", "start": "reading the data", "report": "drawing"}
_SIDES = ("number", "", "number", "", "number", "number", "", "")
_LEGEND = ("= exact", "≥ lower bound", "≈ estimate between limits", "± standard error; bars are two of them")
_OPEN = "This model may be better than its lower limit says: a bound leaves open which of the two is."
_TIED = "These rows do not separate it from the best."


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return page(studio, "compare", *_content(studio))

    return [Route("/compare", show), *_routes_of_jobs(studio), *_routes_of_models(studio)]


def _routes_of_jobs(studio: Studio) -> list[Route]:
    """Comparisons are started, stopped, resumed and watched."""

    async def start(request: Request) -> Response:
        asked = await form(request, re.compile(r"seed|m-[a-z]+"))
        names = [name.removeprefix("m-") for name in asked if name.startswith("m-")]
        known = _choices(studio)
        if not names or not set(names) <= set(known):
            raise BadRequest("choose at least one of the models that are listed.")
        seed = whole(asked, "seed", 0, 0, 2**31 - 1)
        await run_in_threadpool(studio.jobs.start, [name for name in known if name in names], seed)
        return RedirectResponse("/compare", 303)

    async def stop(request: Request) -> Response:
        await form(request, ())
        await run_in_threadpool(studio.jobs.stop, request.path_params["job"])
        return RedirectResponse("/compare", 303)

    async def resume(request: Request) -> Response:
        await form(request, ())
        await run_in_threadpool(studio.jobs.resume, request.path_params["job"])
        return RedirectResponse("/compare", 303)

    async def events(request: Request) -> Response:
        job = studio.jobs.find(request.path_params["job"])
        return StreamingResponse(_events(studio, job, request), media_type="text/event-stream")

    return [
        Route("/compare/start", start, methods=["POST"]),
        Route("/compare/{job}/stop", stop, methods=["POST"]),
        Route("/compare/{job}/resume", resume, methods=["POST"]),
        Route("/compare/{job}/events", events),
    ]


def _routes_of_models(studio: Studio) -> list[Route]:
    """A model is chosen to be looked through, sent as a file, or saved."""

    async def use(request: Request) -> Response:
        asked = await form(request, ("model",))
        await run_in_threadpool(studio.space.use, asked.get("model", ""))
        return RedirectResponse("/table" if studio.space.data is not None else "/", 303)

    async def load(request: Request) -> Response:
        asked = query(request, ("name",))
        if request.headers.get("content-type", "").lower() != "application/octet-stream":
            raise BadRequest("a model is sent as the bytes of its file.", 415)
        fitted = await run_in_threadpool(studio.space.keep, asked.get("name", ""), await request.body())
        await run_in_threadpool(studio.space.use, fitted.number)
        return fragment(tag("p", f"{fitted.name} is in use."))

    def download(request: Request) -> Response:
        fitted = studio.space.find(request.path_params["model"])
        name = f'attachment; filename="{re.sub(r"[^A-Za-z0-9]+", "-", fitted.name)}.likely"'
        content = fitted.path.read_bytes()
        return Response(content, media_type="application/octet-stream", headers={"Content-Disposition": name})

    return [
        Route("/use", use, methods=["POST"]),
        Route(LOAD, load, methods=["POST"]),
        Route("/models/{model}.likely", download),
    ]


async def _events(studio: Studio, job: Job, request: Request) -> AsyncIterator[str]:
    """The job's part of the page whenever it changes, until it ends; a beat now and then, or proxies close it."""
    seen, quiet = -1, 0.0
    while not await request.is_disconnected():
        version, active = job.version, job.status in ACTIVE
        if version != seen:
            # All who watch share one drawing.
            key = ("job", job.number, version)
            text = await run_in_threadpool(studio.once, key, lambda: str(job_part(studio, job)))
            seen, quiet = version, 0.0
            yield f"data: {json.dumps(text)}\n\n"
        elif quiet >= _SECONDS_BETWEEN_BEATS:
            quiet = 0.0
            yield ": still here\n\n"
        if not active:
            # Drawn once more: it may have ended between the count of its changes and the look at how it stands.
            yield f"data: {json.dumps(await run_in_threadpool(lambda: str(job_part(studio, job))))}\n\n"
            yield "event: end\ndata: end\n\n"
            return
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        quiet += _SECONDS_BETWEEN_LOOKS


def _choices(studio: Studio) -> list[str]:
    """Names of the models that can be compared on the table."""
    source = studio.space.source
    if studio.space.text is not None:
        return [entry.name for entry in registry.learning_from("text") if entry.has_evidence]
    if source is None:
        return []
    binary = set(source.schema.kinds) == {"binary"}
    found = [entry for entry in registry.learning_from("rows") if entry.has_evidence]
    classes = {entry.name: registry.model_class(entry.class_name) for entry in found}
    return [name for name, cls in classes.items() if not cls._is_composite and (binary or not cls._binary_only)]


def _content(studio: Studio) -> list[Any]:
    if studio.space.data is None:
        return [state("No table", "Models are compared on a table: likely studio table.csv"), _files(studio)]
    jobs = list(reversed(studio.jobs.jobs.values()))
    parts: list[Any] = [
        tag(
            "div",
            tag("h1", "Compare"),
            tag(
                "p",
                "Models learn from the training rows, and are ranked by what they are sure of on rows they never saw.",
            ),
            class_="lead",
        ),
        _start_form(studio, bool(jobs)),
    ]
    if not jobs:
        parts.append(
            state("Nothing compared yet", "Choose models above and start; the table grows here while they learn.")
        )
    for job in jobs:
        live = f"/compare/{job.number}/events" if job.status in ACTIVE else None
        parts.append(tag("section", job_part(studio, job), data_events=live))
    models = json.dumps(
        jobs[0].asked.get("models", []) if jobs else list(_DEFAULT_OF_TEXT if studio.space.text else _DEFAULT)
    )
    parts.append(_files(studio))
    return [*parts, python([*loading_lines(studio)[:2], f"board = likely.compare({models}, data)", "print(board)"])]


def _start_form(studio: Studio, compared: bool) -> Markup:
    of_text = studio.space.text is not None
    known = registry.learning_from("text" if of_text else "rows")
    summaries = {entry.name: (entry.class_name, entry.summary) for entry in known}
    first = _DEFAULT_OF_TEXT if of_text else _DEFAULT
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name=f"m-{name}", value="1", checked=name in first),
            tag("span", tag("b", summaries[name][0]), tag("small", summaries[name][1])),
        )
        for name in _choices(studio)
    ]
    seed = tag("label", "Seed ", tag("input", type="number", name="seed", value=0, min=0))
    button = tag("div", tag("button", "Start", class_="button"), seed, class_="actions")
    inside = tag("form", tag("div", *boxes, class_="choices"), button, method="post", action="/compare/start")
    return tag("details", tag("summary", "New comparison"), inside, open=not compared, class_="new")


def _files(studio: Studio) -> Markup:
    """Models from files, to be looked through like those of a comparison; and a way to load another."""
    lines = [
        tag("tr", tag("td", tag("b", own.name), tag("small", own.about)), tag("td", _actions(studio, own.number)))
        for own in studio.space.files()
    ]
    table = tag("div", tag("table", tag("tbody", *lines), class_="files"), class_="scroll") if lines else None
    words = "A file of a model, saved here or in Python; it is copied into the studio's folder, and used."
    chosen = tag("input", type="file", name="file", accept=".likely", required=True, aria_label="a model's file")
    fields = tag("div", chosen, tag("button", "Load", class_="button plain"), class_="controls")
    form_ = tag("form", tag("p", words, class_="note"), fields, data_upload=LOAD, data_into="loaded")
    opened = tag("details", tag("summary", "Load a model"), form_, tag("div", id="loaded", aria_live="polite"))
    return tag("section", tag("h2", "Models from files") if lines else None, table, opened)


def _actions(studio: Studio, number: str) -> Markup:
    """Use a model, or the word that it is in use; and its file."""
    current = studio.space.current()
    is_used = current is not None and current.number == number
    chosen = tag("span", "in use", class_="chip") if is_used else _button("Use", "/use", model=number)
    return tag("div", chosen, tag("a", "save", href=f"/models/{number}.likely"), class_="actions")


def job_part(studio: Studio, job: Job) -> Markup:
    """A comparison as it stands."""
    action = None
    if job.status in ("queued", "running"):
        action = _button("Stop", f"/compare/{job.number}/stop")
    elif job.status in ("stopped", "failed"):
        action = _button("Resume", f"/compare/{job.number}/resume")
    reason = job.state.get("reason")
    words = f"Comparison {job.number} {_WORDS[job.status]}" + (f": {reason}" if reason else ".")
    return tag(
        "div", tag("div", tag("p", words), action, class_=f"bar-line {job.status}"), _progress(job), _board(studio, job)
    )


def _button(label: str, address: str, **fields: str) -> Markup:
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in fields.items()]
    return tag("form", *hidden, tag("button", label), method="post", action=address)


def _progress(job: Job) -> Markup | None:
    """The model that is being fitted, how far it is, and its learning curve."""
    if job.status not in ("running", "stopping"):
        return None
    now = job.now
    words = " ".join(str(word) for word in (now.get("model", ""), _STAGES.get(now.get("stage", "start"), "")))
    share = now.get("share")
    figures = "  ".join(f"{key} {value:.4g}" for key, value in now.get("metrics", {}).items())
    bar = tag("progress", value=f"{share:.3f}" if share else None, max=1, aria_label="progress")
    done = len(job.board.get("entries", []))
    about = f"{done} of {len(job.asked.get('models', []))} models are measured"
    return tag(
        "div",
        tag("b", words),
        bar,
        tag("span", figures, class_="note"),
        curve(job.curve, "learning curve"),
        tag("span", about, class_="note"),
        class_="now",
    )


def _board(studio: Studio, job: Job) -> Markup | None:
    entries = job.board.get("entries", [])
    if not entries:
        return None
    unit = "nats/sentence" if any("perplexity" in entry for entry in entries) else "nats/row"
    head = ("", "model", f"log p, {unit}", "", "to the best", "fit", "curve", "")
    lines = [_line(studio, job, entry, bar) for entry, bar in zip(entries, intervals(entries), strict=True)]
    titles = [tag("th", word, class_=side or None) for word, side in zip(head, _SIDES, strict=True)]
    table = tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *lines), class_="board")
    legend = [tag("span", words) for words in _LEGEND]
    return tag("div", tag("div", table, class_="scroll"), tag("p", *legend, class_="legend"))


def _line(studio: Studio, job: Job, entry: dict[str, Any], bar: Markup) -> Markup:
    """A model's line of the board."""
    figure: Any = "–"
    if entry.get("mean") is not None:
        figure = f"{SIGNS[entry['kind']]} {number(entry['mean'])} ± {number(_or_nan(entry.get('stderr')))}"
    if entry.get("perplexity"):
        figure = [figure, tag("small", f"perplexity {entry['perplexity']:,.1f}")]
    why = {"open": _OPEN, "tied": _TIED}.get(entry["standing"], "") or entry.get("apart") or ""
    about = tag("small", why) if why else None
    fitted = f"{job.number}-{str(entry.get('file')).removesuffix('.likely')}" if entry.get("file") else ""
    action = _actions(studio, fitted) if fitted else None
    cells = (entry.get("rank") or "–", [tag("b", entry["name"]), about], figure, bar, _gap(entry))
    rest = (seconds(_or_nan(entry.get("fit_seconds"))), curve(entry.get("curve", []), "learning curve"), action)
    return tag("tr", *[tag("td", c, class_=n or None) for c, n in zip((*cells, *rest), _SIDES, strict=True)])


def _gap(entry: dict[str, Any]) -> str:
    """The interval of the difference to the best."""
    if entry["standing"] in ("best", "apart"):
        return ""
    low, high = (
        number(entry[key]) if entry.get(key) is not None else "∞" for key in ("difference_low", "difference_high")
    )
    return f"[{'−∞' if low == '∞' else low}, {high}]"


def _or_nan(value: Any) -> float:
    return float("nan") if value is None else float(value)
