"""
Finding spam with few labels
============================

::

    python examples/label_sms.py [--data FOLDER] [--picture curves.png]
    python examples/label_sms.py --interactive [--keep spam.mwz]

From raw text to a spam filter, with a rule that reports when to stop labelling. The messages come
from ``sms_spam.jsonl.gz`` in the folder that ``--data`` or ``MARGINWISE_DATA`` names: one JSON
object per line, with the keys "label" and "text". Without that file, the script makes up messages.
The true labels answer the questions; with ``--interactive``, you answer them.

This page shows ``python examples/label_sms.py --rows 1500 --seeds 2 --labels 200
--picture output/label_sms.png``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from marginwise import OnlineSVC
from marginwise.active import ActiveLearner, MarginExhausted
from marginwise.metrics import g_mean_score

FILE = "sms_spam.jsonl.gz"
SIZES = (20, 40, 60, 80, 100, 150, 200, 300, 400, 600)


class Messages(NamedTuple):
    """Texts, their TF-IDF features and their labels, some of which are held out."""

    pool: list[str]
    X: Any
    y: NDArray[np.str_]
    X_test: Any
    y_test: NDArray[np.str_]


# %%
# Messages
# --------
def read_messages(folder: Path | None, made_up: int, seed: int) -> tuple[list[str], list[str]]:
    """Return texts and labels: those of the file, or made-up ones."""
    path = None if folder is None else folder / FILE
    if path is None or not path.is_file():
        print(f"There is no {FILE} (see --data); the messages are made up.\n")
        return made_up_messages(made_up, np.random.default_rng(seed))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    texts = [item["text"].strip('"\t ') for item in items]
    return texts, [{0: "ham", 1: "spam"}.get(item["label"], item["label"]) for item in items]


WORDS = {
    "who": "mum Sam Priya Jo sister boss grandpa Ali brother nobody",
    "when": "tonight tomorrow today sunday later soon now friday",
    "what": "bus dinner film homework match book milk report prize phone ticket",
    "verb": "call text meet see ask reply thank help",
    "well": "ok lol sorry thanks haha great hmm really urgent free",
    "prize": "prize cash award phone holiday ticket ringtone minutes",
    "hey": "congratulations urgent customer winner babe dear mum sorry",
}
HAM = (
    "{well}, can you {verb} {who} {when}?",
    "I will {verb} {who} about the {what} {when}",
    "{who} says the {what} is late, {well}",
    "are you free {when}? {who} wants the {what}",
    "{well} I got your {what}, {verb} me {when}",
    "{verb} {who} on {number}, it is about the {what}",
    "did {who} win the {prize}? {well}",
    "{hey} please {verb} {number} {when}",
)
SPAM = (
    "{hey}! you won a {prize}, {verb} {number} {when}",
    "free {prize} for you, {verb} {number}",
    "{hey}, your {prize} waits, {verb} {number} {when}",
    "{verb} {number} for a {prize}, cost {cost}p",
    "{who} sent you a {prize}, {verb} {number} {when}",
    "are you free {when}? {verb} {number}",
    "{hey} please {verb} {number} {when}",
)
CHATTER = "so then just about home going time good like think want still back day love get much"


def made_up_messages(n: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Fill in templates at random; one message in eight is spam, and a few could be either."""
    choices = {name: among.split() for name, among in WORDS.items()}
    chatter = CHATTER.split()
    spam = rng.random(n) < 1 / 8
    texts = []
    for bad in spam:
        words = {name: str(rng.choice(among)) for name, among in choices.items()}
        number, cost = rng.integers(1000, 1100), rng.choice([50, 100, 150])
        form = str(rng.choice(SPAM if bad else HAM))
        tail = rng.choice(chatter, rng.integers(6)).tolist()
        texts.append(" ".join([form.format(number=number, cost=cost, **words), *tail]))
    return texts, np.where(spam, "spam", "ham").tolist()


def prepared(texts: list[str], labels: list[str], seed: int) -> Messages:
    """Hold out three in ten messages, and compute TF-IDF features of all messages."""
    pool, rest, y, y_test = train_test_split(
        texts, np.array(labels), test_size=0.3, stratify=labels, random_state=seed
    )
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)  # needs no labels
    return Messages(pool, vectorizer.fit_transform(pool), y, vectorizer.transform(rest), y_test)


def learner_for(messages: Messages, seed: int, strategy: str = "active") -> ActiveLearner:
    return ActiveLearner(
        OnlineSVC(C=2, kernel="linear"),
        messages.X,
        strategy=strategy,
        stop=MarginExhausted(margin=0.5),
        random_state=seed,
    )


# %%
# Simulated answers
# -----------------
class Measured(NamedTuple):
    """Error on the held-out messages and geometric mean of both recalls, in percent."""

    error: float
    g_mean: float


def measured(learner: ActiveLearner, messages: Messages) -> Measured:
    if not learner.has_model_:  # it has labels of one class only
        return Measured(float("nan"), float("nan"))
    predicted = learner.estimator_.predict(messages.X_test)
    error = 100 * float(np.mean(predicted != messages.y_test))
    return Measured(error, 100 * g_mean_score(messages.y_test, predicted))


def curve(messages: Messages, strategy: str, seed: int, sizes: list[int]) -> list[Measured]:
    """Measure a learner as it asks for labels, without a stopping rule."""
    learner = learner_for(messages, seed, strategy)
    learner.stop = None
    values = []
    for size in sizes:
        learner.run(lambda row: messages.y[row], max_labels=size - len(learner.history_))
        values.append(measured(learner, messages))
    return values


def draw(path: Path, sizes: list[int], found: dict[str, NDArray[np.float64]]) -> None:
    """Draw the median error of each strategy against the number of labels."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, values), marker in zip(found.items(), "os", strict=True):
        axes.plot(sizes, np.nanmedian(values[:, :, 0], axis=0), marker=marker, label=name)
    axes.set(xlabel="labels", ylabel="error on held-out messages, %", ylim=(0, None))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def compare(messages: Messages, seeds: int, most: int, picture: Path | None) -> None:
    """Print the errors with actively selected labels and with random labels."""
    sizes = [size for size in SIZES if size <= min(most, len(messages.pool))]
    found = {
        strategy: np.array([curve(messages, strategy, seed, sizes) for seed in range(seeds)])
        for strategy in ("active", "random")
    }
    print(f"Median of {seeds} runs on {len(messages.y_test):,} held-out messages:")
    print(f"{'':>8}{'error, %':>20}{'g-mean, %':>20}")
    print(f"{'labels':>8}" + f"{'active':>10}{'random':>10}" * 2)
    for k, size in enumerate(sizes):
        active, random = (np.nanmedian(found[name][:, k], axis=0) for name in found)
        cells = (active[0], random[0], active[1], random[1])
        print(f"{size:>8}" + "".join(f"{cell:>10.1f}" for cell in cells))
    if picture is not None:
        draw(picture, sizes, found)


def until_told_to_stop(messages: Messages, seed: int) -> ActiveLearner:
    """Ask until the stopping rule is met, print its reason, and continue with a stricter rule."""
    learner = learner_for(messages, seed)
    for rule in (learner.stop, MarginExhausted()):
        learner.stop = rule
        learner.run(lambda row: messages.y[row])
        error, g_mean = measured(learner, messages)
        spam = sum(step["label"] == "spam" for step in learner.history_)
        print(f"\n{rule}")
        print(f"  stopped after {len(learner.history_):,} labels, {spam:,} of them spam:")
        print(f"  {rule.reason}")
        print(f"  error {error:.1f} %, g-mean {g_mean:.1f} % on the held-out messages")
    return learner


# %%
# Your answers
# ------------
def label_by_hand(messages: Messages, seed: int, keep: Path | None) -> ActiveLearner:
    """Ask at the terminal; "undo" removes the last answer, "quit" keeps all answers."""
    if keep is not None and keep.is_file():
        learner = ActiveLearner.load(keep, messages.X)
        print(f"{len(learner.history_)} labels were kept in {keep}.")
    else:
        learner = learner_for(messages, seed)
    told = False
    while learner.n_unseen_:
        verdict = learner.should_stop()
        if verdict and not told:
            print(f"\nYou may stop: {verdict.reason}")
            told = True
        row = learner.ask()
        print(f"\n{len(learner.history_) + 1}. {messages.pool[row]}")
        answer = typed("spam? y / n / skip / undo / quit: ")
        if answer == "quit":
            break
        if answer == "undo":
            print("taken back" if learner.undo() else "there is nothing to take back")
        elif answer == "skip":
            learner.skip(row)
        else:
            learner.teach(row, "spam" if answer == "y" else "ham")
    if keep is not None:
        learner.save(keep)
        print(f"\nkept in {keep}")
    return learner


def typed(prompt: str) -> str:
    """Return one of the answers; its first letter is enough."""
    answers = ("y", "n", "skip", "undo", "quit")
    while True:
        try:
            said = input(prompt).strip().lower()
        except (EOFError, KeyboardInterrupt):
            return "quit"
        if (said := {"yes": "y", "no": "n"}.get(said, said)) in answers:
            return said
        matches = [answer for answer in answers if said and answer[0] == said]
        if matches:
            return matches[0]


# %%
# Main program
# ------------
def show_most_spam_like(learner: ActiveLearner, messages: Messages, n: int = 10) -> None:
    """Print the unlabelled messages with the highest decision values for spam."""
    if not learner.has_model_:
        print("\nThere is no model yet: it needs at least one label of each kind.")
        return
    rows = learner.sample_unseen(learner.n_unseen_)  # all of them
    scores = learner.decision_values(rows)
    print(f"\nThe {n} most spam-like of {len(rows):,} messages without a label:")
    for k in np.argsort(-scores)[:n]:
        text = textwrap.shorten(messages.pool[rows[k]], 78, placeholder="…")
        print(f"  {scores[k]:5.2f}  {text}")


def main() -> None:
    named = os.environ.get("MARGINWISE_DATA")
    parser = argparse.ArgumentParser(description="Find spam among text messages with few labels.")
    add = parser.add_argument
    add("--data", type=Path, default=named, help=f"folder of {FILE} (default: $MARGINWISE_DATA)")
    add("--rows", type=int, default=5000, help="number of messages to make up if there is no file")
    add("--seeds", type=int, default=5, help="runs to compare")
    add("--labels", type=int, default=600, help="labels at the end of a run")
    add("--seed", type=int, default=0, help="seed of the split and of the sampling")
    add("--interactive", action="store_true", help="answer the questions yourself, at the terminal")
    add("--keep", type=Path, help="with --interactive: file to resume from and to save answers in")
    add("--picture", type=Path, help="PNG file to write; requires matplotlib")
    options = parser.parse_args()
    folder = None if options.data is None else Path(options.data)
    messages = prepared(*read_messages(folder, options.rows, options.seed), options.seed)
    print(f"{len(messages.pool):,} messages to ask about, {messages.X.shape[1]:,} words")
    sys.stdout.flush()
    if options.interactive:
        learner = label_by_hand(messages, options.seed, options.keep)
    else:
        compare(messages, options.seeds, options.labels, options.picture)
        learner = until_told_to_stop(messages, options.seed)
    show_most_spam_like(learner, messages)


# %%
# Output
# ------
if __name__ == "__main__":
    main()
