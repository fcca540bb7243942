"""The ML backend of Label Studio, by requests as its documentation describes them."""

from __future__ import annotations

import base64
import copy
import csv
import json
from pathlib import Path
from typing import Any

import pytest

from marginwise.label.item_files import Columns
from marginwise.label.label_studio import BODIES, MOST_TASKS, routes
from marginwise.label.label_studio_tasks import read_config
from marginwise.label.session import Session
from tests.label_support import ADDRESS, TOKEN, open_session
from tests.support import runner

REQUESTS = Path(__file__).with_name("label_studio")


def request(name: str) -> Any:
    return json.loads((REQUESTS / f"{name}.json").read_text(encoding="utf-8"))


TEXTS = [task["data"]["text"] for task in request("predict")["tasks"]]


def annotated(number: int, label: str | None, user: int = 1, **fields: Any) -> dict[str, Any]:
    """Return the event of an annotation of one of the tasks."""
    event = copy.deepcopy(request("annotation_created"))
    event["task"] = request("predict")["tasks"][number]
    event["annotation"] |= {"id": 200 + number, "task": 100 + number, "completed_by": user}
    event["annotation"]["result"][0]["value"]["choices"] = [label]
    event["annotation"] |= fields
    return event


@pytest.fixture
def session(tmp_path: Path) -> Session:
    path = tmp_path / "films.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([text] for text in TEXTS)])
    return open_session(path, tmp_path / "labels.db", annotator="page")


def client_for(session: Session, headers: dict[str, str] | None = None) -> Any:
    testing = pytest.importorskip("starlette.testclient", reason="needs marginwise[label], httpx")
    from marginwise.label.server import make_app

    return testing.TestClient(
        make_app(session, ADDRESS, routes(session), BODIES),
        base_url=f"http://127.0.0.1:{ADDRESS.port}",
        headers={"Authorization": f"Bearer {TOKEN}"} if headers is None else headers,
    )


@pytest.fixture
def client(session: Session) -> Any:
    return client_for(session)


def labels_of(session: Session) -> dict[str, str | None]:
    """Return the answers that count, by text."""
    answers = session.answered.answers.effective()
    return {session.item(event.item)["text"]: event.label for event in answers}


# -- connecting ------------------------------------------------------------------------------------


def test_health_needs_no_token(session: Session) -> None:
    answer = client_for(session, {}).get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "UP"


def test_setup_returns_the_version_of_the_model(client: Any) -> None:
    answer = client.post("/setup", json=request("setup"))
    assert (answer.status_code, answer.json()["model_version"]) == (200, "marginwise-0")


def test_the_password_of_basic_authentication_is_the_token(session: Session) -> None:
    for password, status in ((TOKEN, 200), ("wrong", 403)):
        pair = base64.b64encode(f"label-studio:{password}".encode()).decode()
        client = client_for(session, {"Authorization": f"Basic {pair}"})
        assert client.post("/setup", json=request("setup")).status_code == status


@pytest.mark.parametrize("path", BODIES)
def test_no_route_answers_without_a_token(session: Session, path: str) -> None:
    assert client_for(session, {}).post(path, json=request("setup")).status_code == 403


def test_the_routes_are_off_by_default(session: Session) -> None:
    testing = pytest.importorskip("starlette.testclient", reason="needs marginwise[label], httpx")
    from marginwise.label.server import make_app

    client = testing.TestClient(
        make_app(session, ADDRESS),
        base_url=f"http://127.0.0.1:{ADDRESS.port}",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    assert client.post("/webhook", json=request("annotation_created")).status_code == 404


# -- predictions -----------------------------------------------------------------------------------


def test_without_a_model_tasks_have_no_prediction(client: Any) -> None:
    answer = client.post("/predict", json=request("predict")).json()
    assert [result["result"] for result in answer["results"]] == [[]] * len(TEXTS)
    assert {result["score"] for result in answer["results"]} == {0.0}


def test_predictions_follow_the_annotations(client: Any) -> None:
    for number, label in ((0, "good"), (5, "bad"), (1, "good"), (6, "bad")):
        answer = client.post("/webhook", json=annotated(number, label))
        assert answer.json() | {"model_version": ""} == {
            "ok": True,
            "status": "ok",
            "learned": 1,
            "model_version": "",
        }
    answer = client.post("/predict", json=request("predict")).json()
    assert answer["model_version"] == "marginwise-4"
    first = answer["results"][0]
    assert first["result"][0] == {
        "from_name": "sentiment",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": ["good"]},
        "score": first["score"],
    }
    chosen = [result["result"][0]["value"]["choices"][0] for result in answer["results"]]
    assert [chosen[k] for k in (0, 5, 1, 6)] == ["good", "bad", "good", "bad"]
    scores = [result["score"] for result in answer["results"]]
    assert all(0.5 <= score <= 1 for score in scores)
    learned = min(scores[k] for k in (0, 1, 5, 6))
    assert min(scores) < learned, "unlabelled tasks are less certain, so they come first"


def test_unknown_tasks_have_no_prediction(client: Any) -> None:
    for number, label in ((0, "good"), (5, "bad")):
        client.post("/webhook", json=annotated(number, label))
    given = request("predict")
    given["tasks"][3]["data"]["text"] = "A text that is not among the items"
    results = client.post("/predict", json=given).json()["results"]
    assert [bool(result["result"]) for result in results] == [k != 3 for k in range(len(TEXTS))]
    for task in given["tasks"]:
        task["data"]["text"] += " in another edition"
    answer = client.post("/predict", json=given)
    assert answer.status_code == 400
    assert "none of the 10 tasks is among the 10 items of films.csv" in answer.json()["error"]


# -- annotations -----------------------------------------------------------------------------------


def test_an_annotation_is_stored_once(client: Any, session: Session) -> None:
    for expected in (1, 0):
        answer = client.post("/webhook", json=request("annotation_created"))
        assert answer.json()["learned"] == expected
    (event,) = session.store.events()
    assert (event.annotator, event.label, event.duration) == ("label-studio-1", "good", 3.725)
    assert event.time == pytest.approx(1794986101.0)
    assert session.model.version == 1


def test_an_update_changes_the_answer(client: Any, session: Session) -> None:
    client.post("/webhook", json=request("annotation_created"))
    answer = client.post("/webhook", json=request("annotation_updated"))
    assert answer.json()["model_version"] == "marginwise-2"
    assert labels_of(session) == {TEXTS[0]: "bad"}
    assert session.model.version == 1


def test_joined_columns_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text("title,abstract\nOn kernels,They are fast\nOn trees,They are tall\n")
    columns = Columns(text=("title", "abstract"))
    session = open_session(path, tmp_path / "labels.db", columns)
    from marginwise.label.label_studio_tasks import Matcher

    matcher = Matcher(session.items)
    data = {"title": "On trees", "abstract": "They are tall"}
    for field in ("title", "abstract", None):
        assert matcher.find({"data": data}, field) == session.items.ids[1]
    assert matcher.find({"data": {"title": "On trees"}}, "title") is None


def test_a_skipped_task_is_a_skip(client: Any, session: Session) -> None:
    assert client.post("/webhook", json=request("annotation_skipped")).json()["learned"] == 1
    assert labels_of(session) == {TEXTS[3]: None}


def test_a_task_without_data_is_known_from_predictions(client: Any, session: Session) -> None:
    given = request("annotation_created_without_task")
    refused = client.post("/webhook", json=given)
    assert refused.status_code == 400
    assert "the task 105 is not among the 10 items of films.csv" in refused.json()["error"]
    client.post("/predict", json=request("predict"))
    assert client.post("/webhook", json=given).json()["learned"] == 1
    assert labels_of(session) == {TEXTS[5]: "bad"}


def test_a_deleted_annotation_is_taken_back(client: Any, session: Session) -> None:
    client.post("/webhook", json=request("annotation_created"))
    for expected in (1, 0):
        answer = client.post("/webhook", json=request("annotation_deleted"))
        assert answer.json()["learned"] == expected
    assert labels_of(session) == {}
    assert session.model.version == 0


def test_earlier_annotations_that_are_deleted_become_skips(client: Any, session: Session) -> None:
    client.post("/predict", json=request("predict"))
    client.post("/webhook", json=request("annotation_created"))
    client.post("/webhook", json=request("annotation_created_without_task"))
    client.post("/webhook", json=annotated(6, "bad"))
    assert client.post("/webhook", json=request("annotations_deleted")).json()["learned"] == 2
    assert labels_of(session) == {TEXTS[0]: None, TEXTS[5]: None, TEXTS[6]: "bad"}


def test_annotators_are_kept_apart(client: Any, session: Session) -> None:
    client.post("/webhook", json=annotated(2, "good", user=1))
    client.post("/webhook", json=annotated(2, "bad", user=2, id=300))
    item = session.store.events()[0].item
    answers = session.answered.answers
    assert answers.answer(item, "label-studio-1").label == "good"
    assert answers.answer(item, "label-studio-2").label == "bad"


def test_the_page_continues_with_other_items(client: Any, session: Session) -> None:
    asked = session.state()["queue"][0]
    client.post("/webhook", json=annotated(TEXTS.index(asked["text"]), "good"))
    assert asked["id"] not in [item["id"] for item in session.state()["queue"]]


@pytest.mark.parametrize(
    ("name", "status"),
    [("start_training", "ok"), ("project_updated", "ok"), ("tasks_created", "ignored")],
)
def test_other_events_store_nothing(client: Any, session: Session, name: str, status: str) -> None:
    answer = client.post("/webhook", json=request(name))
    assert (answer.status_code, answer.json()["status"]) == (200, status)
    assert session.store.events() == []


# -- bad requests ----------------------------------------------------------------------------------

CONFIG = request("setup")["schema"]
BAD_CONFIGS = {
    "not XML": ("<View><Text", "not XML"),
    "entities": ("<!DOCTYPE a [<!ENTITY b 'c'>]><View>&b;</View>", "document type"),
    "no choices": ('<View><Text name="text" value="$text"/></View>', "no Choices tag"),
    "other labels": (CONFIG.replace('"bad"', '"poor"'), "offers good, poor"),
    "several": (CONFIG.replace('"single"', '"multiple"'), "allows several"),
    "another object": (CONFIG.replace("<Text", "<Audio"), "is about 'text'"),
    "no field": (CONFIG.replace("$text", "hello"), "does not show a field"),
    "images": (CONFIG.replace("<Text", "<Image"), "of the kind text"),
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_configurations_that_do_not_fit(client: Any, name: str) -> None:
    config, message = BAD_CONFIGS[name]
    answer = client.post("/setup", json=request("setup") | {"schema": config})
    assert answer.status_code == 400
    assert message in answer.json()["error"]


def test_choices_are_named_by_their_alias() -> None:
    config = CONFIG.replace('value="bad"', 'value="Bad film" alias="bad"')
    assert read_config(config, ["bad", "good"]).choices == ("good", "bad")


MALFORMED: dict[str, tuple[str, Any]] = {
    "a list": ("/predict", []),
    "no tasks": ("/predict", {"label_config": CONFIG}),
    "tasks are numbers": ("/predict", {"tasks": [1], "label_config": CONFIG}),
    "too many": ("/predict", {"tasks": [{}] * (MOST_TASKS + 1), "label_config": CONFIG}),
    "no config": ("/predict", {"tasks": []}),
    "no schema": ("/setup", {"project": "7.1"}),
    "a schema of numbers": ("/setup", {"schema": 3}),
    "no action": ("/webhook", {"annotation": {}}),
    "no annotation": ("/webhook", {"action": "ANNOTATION_CREATED"}),
    "an annotation without id": ("/webhook", {"action": "ANNOTATION_CREATED", "annotation": {}}),
    "no project": ("/webhook", request("annotation_created") | {"project": None}),
    "a project of text": ("/webhook", request("annotation_created") | {"project": "seven"}),
    "an unknown choice": ("/webhook", annotated(0, "poor")),
    "two choices": (
        "/webhook",
        annotated(0, "good", result=[{"value": {"choices": ["good", "bad"]}}]),
    ),
    "another control": ("/webhook", annotated(0, "good", result=[{"value": {"rating": 3}}])),
    "a result of text": ("/webhook", annotated(0, "good", result="good")),
    "an unknown text": (
        "/webhook",
        annotated(0, "good") | {"task": {"id": 1, "data": {"text": "?"}}},
    ),
    "too many annotations": (
        "/webhook",
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1}] * (MOST_TASKS + 1)},
    ),
    "a user of half a character": ("/webhook", annotated(0, "good", user="\ud800")),
    "deleted without id": ("/webhook", {"action": "ANNOTATION_DELETED", "annotation": {}}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_refused(client: Any, session: Session, name: str) -> None:
    path, given = MALFORMED[name]
    body = json.dumps(given)  # with escapes, unlike the client's own
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["ok"] is False
    assert len(answer.json()["error"]) > 20
    assert session.store.events() == []


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_requests_that_are_not_json(client: Any, body: bytes) -> None:
    answer = client.post("/webhook", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


def test_bodies_are_bounded(client: Any) -> None:
    headers = {"Content-Type": "application/json"}
    tasks = request("predict")
    tasks["tasks"][0]["meta"] = {"note": "x" * 200_000}
    assert client.post("/predict", json=tasks).status_code == 200
    large = b" " * (BODIES["/predict"] + 1)
    assert client.post("/predict", content=large, headers=headers).status_code == 413
    assert client.post("/api/undo", content=b" " * 70_000, headers=headers).status_code == 413


@pytest.mark.parametrize(
    "fields",
    [
        {"completed_by": None, "lead_time": None, "updated_at": None, "created_at": None},
        {"completed_by": {"id": 4}, "lead_time": -1, "updated_at": "yesterday"},
        {"completed_by": "x", "lead_time": True, "updated_at": 5, "created_at": 5},
        {"completed_by": "x" * 1000, "lead_time": "long", "updated_at": "y" * 1000},
    ],
)
def test_odd_fields_of_an_annotation_do_not_matter(
    client: Any, session: Session, fields: dict[str, Any]
) -> None:
    assert client.post("/webhook", json=annotated(0, "good", **fields)).json()["learned"] == 1
    (event,) = session.store.events()
    assert event.duration is None
    assert len(event.key + event.annotator) < 250


def test_the_command_has_the_routes_on_request(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="needs marginwise[label]")
    pytest.importorskip("pyarrow", reason="tables are read with pyarrow")
    from marginwise.cli import main

    path = tmp_path / "texts.csv"
    path.write_text("text\nfine and warm\ncold and grim\n")
    store = str(tmp_path / "labels.db")
    command = [
        "label",
        str(path),
        "--text-column",
        "text",
        "--labels",
        "good,bad",
        "--store",
        store,
    ]
    for option, found in ((["--label-studio"], True), ([], False)):
        result = runner().invoke(main, [*command, *option, "--get", "/health"])
        assert (result.exit_code == 0, '"UP"' in result.output) == (found, found), result.output


# -- images and tables -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "/data/upload/7/0a1b2c3d-cat.png",
        "/data/local-files/?d=pets/one/cat.png",
        "https://example.com/one/cat.png?version=2",
        "s3://bucket/one/cat.png",
    ],
)
def test_images_are_found_by_their_files(tmp_path: Path, address: str) -> None:
    Image = pytest.importorskip("PIL.Image", reason="images are read with Pillow")
    for number, name in enumerate(("one/cat.png", "one/dog.png", "two/dog.png")):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 40 * number).save(path)
    session = open_session(tmp_path / "pets", tmp_path / "labels.db", Columns())
    from marginwise.label.label_studio_tasks import Matcher

    matcher = Matcher(session.items)
    found = matcher.find({"data": {"image": address}}, "image")
    assert found is not None
    assert session.item(found)["title"].endswith("one/cat.png")
    assert matcher.find({"image": "/data/upload/7/0a1b2c3d-dog.png"}, "image") is None, (
        "two of them"
    )
    for strange in ("http://[", "../../etc/passwd", "", "/"):
        assert matcher.find({"data": {"image": strange}}, "image") is None


def test_rows_are_found_by_their_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("size,colour\n1.5,red\n2,blue\n3,green\n")
    session = open_session(path, tmp_path / "labels.db", Columns())
    from marginwise.label.label_studio_tasks import Matcher

    matcher = Matcher(session.items)
    first, second, third = session.items.ids
    for data, item in (
        ({"size": "2", "colour": "blue"}, second),
        ({"row": {"size": 1.5, "colour": "red"}}, first),
        ({"size": "2", "colour": "red"}, None),
        ({"item": third}, third),
        ({"item": "unknown", "size": None}, None),
        ("2,blue", None),
    ):
        assert matcher.find({"data": data}) == item
    assert matcher.find({"data": {}, "meta": {"item": third}}) == third
    assert matcher.find({"data": {}, "meta": [third]}) is None
