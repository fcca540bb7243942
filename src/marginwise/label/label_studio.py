"""ML backend for Label Studio: predicts labels of its tasks and learns from its annotations.

Label Studio connects to a backend with `/health` and `/setup`, requests predictions with
`/predict`, and sends annotations to `/webhook`. Annotations become events in the store of the
session, like answers on the page, and are learned before the backend responds.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any

from marginwise.label.events import Event
from marginwise.label.label_studio_tasks import Config, Matcher, read_config
from marginwise.label.session import Session

MOST_BODY = 16 * 1024 * 1024  # bytes of a request, which contains a batch of tasks
MOST_TASKS = 1000  # tasks or annotations in one request
MOST_NAME = 80  # characters of the name of a project, a user or a version
REMEMBERED = 100_000  # tasks whose items are remembered, for requests without task data
PATHS = ("/setup", "/predict", "/webhook")
BODIES = dict.fromkeys(PATHS, MOST_BODY)
CREATED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
DELETED = ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED")


def routes(session: Session) -> list[Any]:
    """Return the routes of the ML backend of a session.

    Parameters
    ----------
    session : Session
        Session that predicts and learns.

    Returns
    -------
    routes : list of Route
        Routes to pass to `make_app`, together with `BODIES`.
    """
    from starlette.routing import Route

    from marginwise.label.server import _in_thread, _json, _posted

    backend = Backend(session)
    answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "/setup": backend.setup,
        "/predict": backend.predict,
        "/webhook": backend.webhook,
    }
    health = Route("/health", _in_thread(lambda request: _json(backend.health())), methods=["GET"])
    return [health, *(Route(path, _posted(answers[path]), methods=["POST"]) for path in PATHS)]


class Backend:
    """Handler of Label Studio's requests.

    Parameters
    ----------
    session : Session
        Session that predicts and learns.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._matcher = Matcher(session.items)
        self._lock = threading.Lock()
        self._tasks: OrderedDict[tuple[str, int], str] = OrderedDict()  # items by project and task

    # -- requests of Label Studio ------------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        """Report that the server is up."""
        return {"status": "UP", "model_class": "marginwise"}

    def setup(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check the labelling configuration of a project, and return the version of the model."""
        self._config(_text(given, "schema"))
        return {"model_version": self._version}

    def predict(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a prediction for each task, in the order of the tasks.

        The score is the confidence in the label, from 0 to 1, so that Label Studio's uncertainty
        sampling selects the least certain task first. Predictions are empty for tasks that are not
        among the items, and for all tasks before the first model is trained.
        """
        tasks = given.get("tasks")
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise ValueError("tasks is missing; expected a list of objects.")
        if len(tasks) > MOST_TASKS:
            raise ValueError(f"the request has {len(tasks):,} tasks; at most {MOST_TASKS:,} fit.")
        config = self._config(_text(given, "label_config"))
        project = _project(given.get("project"))
        self._session.record([])
        items = [self._item(project, task, config) for task in tasks]
        if tasks and not any(items):
            raise ValueError(self._strange(f"none of the {len(tasks):,} tasks is among"))
        version = self._version
        results = [self._prediction(config, item, version) for item in items]
        return {"results": results, "model_version": version}

    def webhook(self, given: dict[str, Any]) -> dict[str, Any]:
        """Learn the annotations of an event; ignore other events."""
        action = _text(given, "action")
        project = given.get("project")
        project = project if isinstance(project, dict) else {"id": project}
        if action in CREATED:
            stored = self._session.record(self._answers(given, project))
        elif action in DELETED:
            stored = self._take_back(given, project)
        elif action == "PROJECT_UPDATED":
            self._config(_text(project, "label_config"))
            stored = 0
        elif action == "START_TRAINING":  # all annotations are already learned
            stored = self._session.record([])
        else:
            return {"status": "ignored"}
        return {"status": "ok", "learned": stored, "model_version": self._version}

    # -- predictions -------------------------------------------------------------------------------

    @property
    def _version(self) -> str:
        """Version of the model. It changes with each event, so that predictions are updated."""
        return f"marginwise-{self._session.answered.answers.seq}"

    def _config(self, text: str) -> Config:
        config = read_config(text, self._session.settings.labels)
        kind = self._session.items.kind
        if config.kind != kind:
            raise ValueError(
                f"the labelling configuration shows {config.kind}, but the items of "
                f"{self._session.items.name} are of the kind {kind}."
            )
        return config

    def _prediction(self, config: Config, item: str | None, version: str) -> dict[str, Any]:
        guess = None if item is None else self._session.guess(item)
        if guess is None:
            return {"result": [], "score": 0.0, "model_version": version}
        result = {
            "from_name": config.control,
            "to_name": config.target,
            "type": "choices",
            "value": {"choices": [guess["label"]]},
            "score": guess["confidence"],
        }
        return {"result": [result], "score": guess["confidence"], "model_version": version}

    # -- tasks -------------------------------------------------------------------------------------

    def _item(self, project: str, task: Any, config: Config) -> str | None:
        """Return the item of a task that includes its data, and remember it; None if unknown."""
        if not isinstance(task, dict):
            return None
        item = self._matcher.find(task, config.field)
        if item is not None and type(task.get("id")) is int:
            with self._lock:
                self._tasks[project, task["id"]] = item
                if len(self._tasks) > REMEMBERED:
                    self._tasks.popitem(last=False)
        return item

    def _item_of(self, annotation: dict[str, Any], task: Any, name: str, config: Config) -> str:
        """Return the item of an annotation; its event does not always include the task."""
        number = annotation.get("task", task.get("id") if isinstance(task, dict) else None)
        item = self._item(name, task, config)
        if item is None and type(number) is int:
            with self._lock:
                item = self._tasks.get((name, number))
        if item is None:
            raise ValueError(self._strange(f"the task {number!r:.20} is not among"))
        return item

    def _strange(self, what: str) -> str:
        items = self._session.items
        return (
            f"{what} the {len(items):,} items of {items.name}. Import the same "
            f"{'files' if items.kind == 'image' else 'texts or rows'} into Label Studio, or start "
            "marginwise with the items of the project."
        )

    # -- annotations -------------------------------------------------------------------------------

    def _answers(self, given: dict[str, Any], project: dict[str, Any]) -> list[Event]:
        """Return the events for the annotations of a request."""
        name, config = _project(project.get("id")), self._config(_text(project, "label_config"))
        return [
            self._answer(
                annotation, self._item_of(annotation, given.get("task"), name, config), name
            )
            for annotation in _annotations(given)
        ]

    def _answer(self, annotation: dict[str, Any], item: str, project: str) -> Event:
        label = self._label(annotation)
        version = str(annotation.get("updated_at") or _digest(annotation.get("result")))
        return Event(
            kind="skip" if label is None else "label",
            item=item,
            label=label,
            annotator=_annotator(annotation),
            key=f"{_key(project, annotation)}{version[:MOST_NAME]}",
            time=_time(annotation),
            duration=_duration(annotation),
            purpose="browse",
        )

    def _label(self, annotation: dict[str, Any]) -> str | None:
        """Return the choice of an annotation; None if the task was skipped or has no choice."""
        results = annotation.get("result")
        if annotation.get("was_cancelled") or not results:
            return None
        labels = self._session.settings.labels
        for result in results if isinstance(results, list) else ():
            value = result.get("value") if isinstance(result, dict) else None
            chosen = value.get("choices") if isinstance(value, dict) else None
            if not isinstance(chosen, list) or not set(map(str, chosen)) & set(labels):
                continue
            if len(chosen) > 1:
                raise ValueError(f"the annotation has {len(chosen)} choices; expected one.")
            return str(chosen[0])
        raise ValueError(f"the annotation has no choice among {', '.join(labels)}.")

    def _take_back(self, given: dict[str, Any], project: dict[str, Any]) -> int:
        """Withdraw the answers of deleted annotations, by an undo or, for older ones, by a skip."""
        stored = 0
        for annotation in _annotations(given):
            start = _key(_project(project.get("id")), annotation)
            own = [e for e in self._session.store.events() if e.key.startswith(start)]
            if own and not own[-1].key.endswith(":deleted"):
                stored += self._session.withdraw(own[-1], f"{start}:deleted")
        return stored


# -- fields of requests ----------------------------------------------------------------------------


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is missing; expected a string.")
    return value


def _annotations(given: dict[str, Any]) -> list[dict[str, Any]]:
    several = given.get("annotations")
    found = several if isinstance(several, list) else [given.get("annotation", given)]
    if len(found) > MOST_TASKS:
        raise ValueError(f"the event has {len(found):,} annotations; at most {MOST_TASKS:,} fit.")
    for annotation in found:
        if not isinstance(annotation, dict) or type(annotation.get("id")) is not int:
            raise ValueError("annotation is missing; expected an object with an integer id.")
    return found


def _project(value: Any) -> str:
    """Return the number of a project; requests other than events append its creation time."""
    return str(value).partition(".")[0][:MOST_NAME]


def _key(project: str, annotation: dict[str, Any]) -> str:
    return f"label-studio:{project}:{annotation['id']}:"


def _annotator(annotation: dict[str, Any]) -> str:
    user = annotation.get("completed_by")
    user = user.get("id") if isinstance(user, dict) else user
    return "label-studio" if user is None else f"label-studio-{str(user)[:MOST_NAME]}"


def _time(annotation: dict[str, Any]) -> float:
    for name in ("updated_at", "created_at"):
        try:
            return max(0.0, datetime.fromisoformat(annotation[name]).timestamp())
        except (KeyError, TypeError, ValueError, OverflowError, OSError):
            continue
    return time.time()


def _duration(annotation: dict[str, Any]) -> float | None:
    value = annotation.get("lead_time")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
