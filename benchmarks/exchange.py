"""Compare exported models with `predict`: time of a batch, time of one row, agreement.

    python benchmarks/exchange.py                         60,000 rows of MNIST, and one row
    python benchmarks/exchange.py --rows 10000            a smaller model
    python benchmarks/exchange.py --out FILE.json         also store the results
    python benchmarks/exchange.py --page docs/guide/deploy.md   write stored figures into a page

Everything runs on one thread. The contestants alternate, round by round, and the table shows the
CPU time of the fastest round, because other work on the machine only adds to it. The batch consists
of the test rows of MNIST, with ten classes. Single rows are classified by a model of 1,000 support
vectors and 100 features. The C source is compiled with `cc -O2`, and with `-O3 -march=native
-ffast-math`, and timed by a separate program.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from cache import data_folder
from datasets import files_of, load
from report import filled, heading, write

from marginwise import OnlineSVC
from marginwise.exchange import to_c, to_onnx

RESULT = Path(__file__).parent / "results" / "exchange.json"
BATCH = 256  # rows per call of ONNX Runtime
ROUNDS, CALLS = 7, 2000
VECTORS, FEATURES = 1000, 100
EXPORTS: dict[str, dict[str, Any]] = {
    "ONNX Runtime, float32": {},
    "ONNX Runtime, float32, integers=False": {"integers": False},
    "ONNX Runtime, float64": {"dtype": "float64"},
}
PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "model.h"
int main(void) {
    static float x[MODEL_FEATURES];
    double best = 1e9;
    long sum = 0;
    for (int round = 0; round < %d; ++round) {
        const clock_t start = clock();
        for (int k = 0; k < %d; ++k) {
            x[k %% MODEL_FEATURES] = (float)(k %% 7) - 3;
            sum += model_predict(x);
        }
        const double taken = (double)(clock() - start) / CLOCKS_PER_SEC / %d;
        if (taken < best) best = taken;
    }
    printf("%%.9g %%ld\\n", best, sum);
    return 0;
}
"""


def session(model: Any, pairs: bool = False, **options: Any) -> Any:
    """Return an inference session with one thread, and the size of the model in bytes.

    With `pairs`, the decision values of pairs of classes, which decide the votes, are an output
    "f".
    """
    import onnx
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    converted = to_onnx(model, **options)
    if pairs:
        compared = next(n for n in converted.graph.node if n.op_type == "Greater")
        converted.graph.node.append(onnx.helper.make_node("Identity", compared.input[:1], ["f"]))
        kind = converted.graph.input[0].type.tensor_type.elem_type
        converted.graph.output.append(onnx.helper.make_tensor_value_info("f", kind, None))
    content = converted.SerializeToString()
    return ort.InferenceSession(content, settings, providers=["CPUExecutionProvider"]), len(content)


def fastest(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the CPU seconds of the fastest round of each contestant."""
    best = dict.fromkeys(contestants, np.inf)
    for call in contestants.values():
        call()  # warm the caches
    for _ in range(rounds):
        for name, call in contestants.items():
            began = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - began)
    return best


# -- batches -------------------------------------------------------------------------------------


def batches(folder: Path, rows: int) -> dict[str, Any]:
    split = load("mnist10", str(folder), form="dense32")
    model = OnlineSVC(C=10, gamma=0.02, cache_size=2000, n_jobs=1, random_state=0)
    model.fit(split.X[:rows], split.y[:rows])
    X = split.X_test
    sessions = {name: session(model, True, **options) for name, options in EXPORTS.items()}
    typed = {name: X.astype(options.get("dtype", "float32")) for name, options in EXPORTS.items()}

    def run(name: str, outputs: tuple[str, ...] = ("label", "decision")) -> tuple[Any, ...]:
        made, given = sessions[name][0], typed[name]
        parts = [
            made.run(outputs, {"X": given[k : k + BATCH]}) for k in range(0, len(given), BATCH)
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    works: dict[str, Callable[[], Any]] = {"predict": lambda: model.predict(X)}
    works |= {name: (lambda name=name: run(name)) for name in EXPORTS}
    seconds = fastest(works, ROUNDS)
    labels, f = model.predict(X), model._score(X)
    found: dict[str, Any] = {"predict": {"seconds": seconds["predict"]}}
    for name in EXPORTS:
        label, values = run(name, ("label", "f"))
        found[name] = {
            "seconds": seconds[name],
            "ratio": seconds[name] / seconds["predict"],
            "same_labels": float(np.mean(label == labels)),
            "largest_difference": float(np.abs(values - f).max() / np.abs(f).max()),
            "megabytes": sessions[name][1] / 1e6,
        }
    vectors = len(model.support_)
    return {"train_rows": rows, "rows": len(X), "vectors": vectors, "contestants": found}


# -- one row -------------------------------------------------------------------------------------


def small_model() -> tuple[Any, np.ndarray]:
    """Return a model in which every training row is a support vector, and these rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(VECTORS, FEATURES)).astype(np.float32)
    y = np.arange(VECTORS) % 2
    model = OnlineSVC(C=0.01, gamma=0.01, n_jobs=1, random_state=0).fit(X, y)
    assert len(model.support_) == VECTORS
    return model, X


def single_rows() -> dict[str, float | None]:
    """Return microseconds per row."""
    model, X = small_model()
    made, _ = session(model)
    double, _ = session(model, dtype="float64")
    doubles = X.astype(np.float64)

    def repeated(call: Callable[[int], Any]) -> Callable[[], None]:
        def loop() -> None:
            for k in range(CALLS):
                call(k % VECTORS)

        return loop

    seconds = fastest(
        {
            "predict": repeated(lambda k: model.predict(X[k : k + 1])),
            "predict_one": repeated(lambda k: model.predict_one(X[k])),
            "ONNX Runtime, float32": repeated(lambda k: made.run(["label"], {"X": X[k : k + 1]})),
            "ONNX Runtime, float64": repeated(
                lambda k: double.run(["label"], {"X": doubles[k : k + 1]})
            ),
        },
        ROUNDS,
    )
    found: dict[str, float | None] = {name: 1e6 * t / CALLS for name, t in seconds.items()}
    for name, flags in {"C, cc -O2": [], "C, cc -O3 -march=native -ffast-math": FAST}.items():
        found[name] = compiled(model, flags)
    return found


FAST = ["-O3", "-march=native", "-ffast-math"]


def compiled(model: Any, flags: list[str]) -> float | None:
    """Return microseconds per row of the C source; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_c(model, folder / "model.h")
        (folder / "main.c").write_text(PROGRAM % (ROUNDS, CALLS, CALLS))
        program = str(folder / "main")
        command = [compiler, "-std=c99", "-O2", *flags, "-o", program, str(folder / "main.c")]
        subprocess.run([*command, "-lm"], check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    return 1e6 * float(done.stdout.split()[0])


# -- tables --------------------------------------------------------------------------------------


def tables(report: dict[str, Any]) -> str:
    """Return the tables and the note of the page."""
    batch, rows = report["batch"], report["row"]
    lines = [
        f"{batch['rows']:,} rows of MNIST, ten classes, {batch['vectors']:,} support vectors:",
        "",
        "| | seconds | times `predict` | same labels | largest difference | MB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in batch["contestants"].items():
        cells = [f"`{name}`" if name == "predict" else name, f"{row['seconds']:.2f}"]
        if "ratio" in row:
            cells += [f"{row['ratio']:.2f}", f"{100 * row['same_labels']:.2f} %"]
            cells += [f"{row['largest_difference']:.0e}", f"{row['megabytes']:.0f}"]
        lines.append(f"| {' | '.join(cells + ['–'] * (6 - len(cells)))} |")
    lines += [
        "",
        f"One row, {report['vectors']:,} support vectors × {report['features']} features:",
        "",
        "| | µs per row |",
        "|---|---:|",
    ]
    for name, value in rows.items():
        shown = f"`{name}`" if name.startswith("predict") else name
        lines.append(f"| {shown} | {'–' if value is None else f'{value:.0f}'} |")
    machine, versions = report["machine"], report["versions"]
    lines += [
        "",
        f"Measured on one of {machine['cores']} cores of {machine['cpu']} with onnxruntime "
        f"{versions['onnxruntime']}. Differences are those of the decision values of pairs of "
        "classes, relative to the largest one.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--rows", type=int, default=60_000, help="training rows of MNIST")
    add("--out", type=Path, help="JSON file to write")
    add("--page", type=Path, help="write the stored figures into this page, and measure nothing")
    options = parser.parse_args()
    if options.page:
        report = json.loads(RESULT.read_text(encoding="utf-8"))
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(filled(page, "exchange", tables(report)), encoding="utf-8")
        return
    files = [options.data / file for file in files_of(["mnist10"])]
    report = {**heading(Path(__file__).parent.parent, files), "batch_rows": BATCH}
    report["versions"] |= {name: version(name) for name in ("onnx", "onnxruntime")}
    report |= {"vectors": VECTORS, "features": FEATURES}
    report |= {"row": single_rows(), "batch": batches(options.data, options.rows)}
    print(tables(report))
    if options.out:
        write(options.out, report)


if __name__ == "__main__":
    main()
