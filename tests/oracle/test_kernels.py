"""Every kernel against NumPy in double precision, however the numbers are handed over.

A model is a sum of kernel values: f(x) = sum_s alpha_s K(x_s, x) + b. Kernel values are therefore
compared through the decision values of small models whose alpha and b are known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from marginwise import OnlineSVC, _core
from marginwise._engine.plan import NATIVE, WITH_GAMMA
from tests.support import assert_same_model, binary_values, blobs, kernel_values, sparse_rows

OPTIONS: dict[str, dict[str, Any]] = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.4, "coef0": 0.5, "degree": 3},
    "sigmoid": {"gamma": 0.2, "coef0": 0.1},
    "cosine": {},
    "tanimoto": {},
}


def learner(kernel: str, **params: Any) -> OnlineSVC:
    return OnlineSVC(
        **{"kernel": kernel, "C": 1.0, "gamma": 1.0, "random_state": 0} | OPTIONS[kernel] | params
    )


def sparse_data(n: int, d: int, density: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of nonnegative numbers, most of them zero, exact in single precision."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.integers(1, 256, size=(n, d)) / 128, 0.0)
    y = (X @ rng.normal(size=d) > 0).astype(np.int64)
    y[:2] = 0, 1
    return X, y


def assert_values(model: OnlineSVC, X: np.ndarray, X_test: Any, why: str) -> None:
    kernel = model.kernel
    K = kernel_values(kernel, X_test, X[model.support_], **OPTIONS[kernel])
    alpha = model.dual_coef_
    expected = K @ alpha.T + model.intercept_
    values = model.decision_function(X_test).reshape(expected.shape)
    # Single precision: each value is good to some 1e-6 of the largest.
    scale = np.abs(alpha).sum() * max(1.0, np.abs(K).max())
    np.testing.assert_allclose(values, expected, rtol=0, atol=3e-6 * scale, err_msg=why)


# -- against the definition -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", OPTIONS)
def test_dense_values(kernel: str, dtype: type, seed: int) -> None:
    X, y = blobs(60, seed, classes=2, d=7)
    X_test, _ = blobs(30, seed + 1000, classes=2, d=7)
    model = learner(kernel).fit(X.astype(dtype), y)
    assert_values(model, X.astype(dtype), X_test.astype(dtype), f"{kernel}, dense {dtype.__name__}")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*constant decision function")  # of which many are empty
@pytest.mark.parametrize("d", [1, 3, 63, 64, 65, 500, 2000])
@pytest.mark.parametrize("kernel", OPTIONS)
def test_values_at_any_width_and_density(kernel: str, d: int, seed: int) -> None:
    for density in (0.02, 0.2, 0.9):
        X, y = sparse_data(50, d, density, seed)
        X_test, _ = sparse_data(20, d, density, seed + 1)
        scaled = {"gamma": 1.0 / d} if kernel in ("poly", "sigmoid", "rbf") else {}
        model = learner(kernel, finish_at_end=False, **scaled).fit(sp.csr_array(X), y)
        K = kernel_values(kernel, X_test, X[model.support_], **{**OPTIONS[kernel], **scaled})
        expected = K @ model.dual_coef_[0] + model.intercept_[0]
        scale = np.abs(model.dual_coef_).sum() * max(1.0, np.abs(K).max())
        for form in (X_test, sp.csr_array(X_test), sp.csr_matrix(X_test.astype(np.float32))):
            np.testing.assert_allclose(
                model.decision_function(form),
                expected,
                rtol=0,
                atol=3e-6 * scale,
                err_msg=f"{kernel}, {d} features, density {density}, {type(form).__name__}",
            )


def test_a_hundred_thousand_features_are_kept_sparse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = 80, 100_000
    X = sparse_rows(n, d, 2e-4, rng)
    y = np.arange(n) % 2
    squares = X.multiply(X).sum(axis=1)
    for kernel in ("linear", "rbf", "cosine"):
        model = learner(kernel).fit(X, y)
        support = model.support_
        K = (X @ X[support].T).toarray()
        if kernel == "rbf":
            K = np.exp(-0.3 * (squares[:, None] + squares[support][None] - 2 * K))
        elif kernel == "cosine":
            K = K / np.sqrt(np.outer(squares, squares[support]))
        expected = K @ model.dual_coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-4, err_msg=kernel)
        assert model.stats_["member_bytes"] < 0.02 * 4 * n * d, "members were kept dense"
        assert sp.issparse(model.support_vectors_)


def test_rows_of_zeros(seed: int) -> None:
    """cos(0, x) = 0; tanimoto(0, 0) = 1, tanimoto(0, x) = 0."""
    X, y = sparse_data(40, 6, 0.5, seed)
    X[5:8] = 0.0
    for kernel in OPTIONS:
        model = learner(kernel).fit(X, y)
        assert_values(model, X, X, f"{kernel} with rows of zeros")


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_degrees(degree: int, seed: int) -> None:
    X, y = blobs(60, seed, classes=2)
    model = learner("poly", degree=degree, gamma=0.1, coef0=1.0).fit(X, y)
    K = kernel_values("poly", X, X[model.support_], gamma=0.1, coef0=1.0, degree=degree)
    expected = K @ model.dual_coef_[0] + model.intercept_[0]
    scale = np.abs(model.dual_coef_).sum() * np.abs(K).max()
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=3e-6 * scale)


def test_rbf_far_away_is_exactly_zero() -> None:
    model = learner("rbf", gamma=1.0).partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])
    far = model.decision_function([[25.0], [-25.0], [1e6]])
    assert far.tolist() == [model.intercept_[0]] * 3


# -- to the bit -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kernel", OPTIONS)
@pytest.mark.parametrize("form", ["dense", "csr", "wide csr"])
def test_a_value_is_the_same_alone_and_in_any_batch(kernel: str, form: str, seed: int) -> None:
    d, density = (400, 0.03) if form == "wide csr" else (20, 0.5)
    X, y = sparse_data(150, d, density, seed)
    X_test = sparse_data(301, d, density, seed + 1)[0]
    shape = sp.csr_array if "csr" in form else np.asarray
    model = learner(kernel).fit(shape(X), y)
    together = model.decision_function(shape(X_test))
    for size in (1, 2, 3, 4, 5, 7, 64, 257):
        rows = range(0, 301, size) if size > 4 else range(0, 60, size)
        parts = [model.decision_function(shape(X_test[k : k + size])) for k in rows]
        apart = np.concatenate(parts)
        assert np.array_equal(apart, together[: len(apart)]), f"batches of {size} rows differ"
    threaded = model.set_params(n_jobs=2).decision_function(shape(X_test))
    assert np.array_equal(threaded, together), "two threads give other values"


@pytest.mark.parametrize("kernel", OPTIONS)
@pytest.mark.parametrize("density", [0.02, 0.2, 0.45])
def test_dense_and_csr_input_give_the_same_bits(kernel: str, density: float, seed: int) -> None:
    """Below half density nothing is centred, so nothing may differ; 0.02 is stored sparse."""
    X, y = sparse_data(150, 300, density, seed)
    X_test = sparse_data(40, 300, density, seed + 1)[0]
    models = {
        "dense": learner(kernel, gamma=0.01).fit(X, y),
        "dense float32": learner(kernel, gamma=0.01).fit(X.astype(np.float32), y),
        "CSR array": learner(kernel, gamma=0.01).fit(sp.csr_array(X), y),
        "CSR matrix of float32": learner(kernel, gamma=0.01).fit(sp.csr_matrix(X, dtype="f4"), y),
    }
    reference = models["dense"].decision_function(X_test)
    for name, model in models.items():
        assert_same_model(models["dense"], model, f"{name} against dense input")
        for form in (X_test, X_test.astype(np.float32), sp.csr_array(X_test)):
            assert np.array_equal(model.decision_function(form), reference), (
                f"learned from {name}, asked with {type(form).__name__}"
            )


@pytest.mark.parametrize("kernel", ["poly", "sigmoid", "cosine", "tanimoto"])
def test_full_rows_too_give_the_same_bits_where_nothing_is_centred(kernel: str, seed: int) -> None:
    X, y = sparse_data(120, 12, 0.95, seed)
    dense = learner(kernel, gamma=0.05).fit(X, y)
    csr = learner(kernel, gamma=0.05).fit(sp.csr_array(X), y)
    assert_same_model(dense, csr, "CSR against dense input")


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_centred_and_plain_rows_agree(kernel: str, seed: int) -> None:
    """Dense rows may be centred where that changes nothing but rounding; CSR rows are not."""
    X, y = sparse_data(200, 12, 0.95, seed)
    dense = learner(kernel, tol=1e-5, epochs=8).fit(X, y)
    csr = learner(kernel, tol=1e-5, epochs=8).fit(sp.csr_array(X), y)
    assert kernel == "linear" or dense.stats_["centred"]
    assert not csr.stats_["centred"]
    np.testing.assert_allclose(dense.decision_function(X), csr.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(dense.intercept_, csr.intercept_, atol=2e-3)


def test_a_usual_value_is_skipped_like_a_zero(seed: int) -> None:
    """Standardised indicators are measured from the value most of them have: so are zeros."""
    rng = np.random.default_rng(seed)
    flags = rng.random((300, 40)) < 0.1
    X = np.concatenate([rng.normal(size=(300, 4)), flags * 2.5 - 0.75], axis=1)
    y = (X[:, 0] + 0.3 * X[:, 4:8].sum(axis=1) > -0.9).astype(int)
    plain = np.concatenate([X[:, :4], X[:, 4:] + 0.75], axis=1)
    measured = learner("rbf", gamma=0.05, tol=1e-5).fit(X, y)
    zeros = learner("rbf", gamma=0.05, tol=1e-5).fit(plain, y)
    assert measured._engine.plan.center[4:] == [-0.75] * 40
    assert not zeros.stats_["centred"]
    np.testing.assert_allclose(
        measured.decision_function(X), zeros.decision_function(plain), atol=1e-3
    )


def test_few_usual_values_leave_the_mean_as_centre(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 10)) + 1
    X[:, 0] = np.where(rng.random(200) < 0.9, 3.0, 4.0)
    model = learner("rbf").fit(X, (X[:, 1] > 1).astype(int))
    np.testing.assert_allclose(model._engine.plan.center, X.mean(axis=0), atol=1e-12)


# -- every instruction set ------------------------------------------------------------------------

SCRIPT = """
import json, sys
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from marginwise import OnlineSVC, _core

rng = np.random.default_rng(int(sys.argv[1]))
X = np.where(rng.random((400, 30)) < 0.5, rng.normal(size=(400, 30)), 0.0)
y = (np.abs(X[:, :4]).sum(axis=1) > np.median(np.abs(X[:, :4]).sum(axis=1))).astype(int) + (
    X[:, 5] > 1.0
)
results = {"cpu": _core.cpu()}
for kernel, double in [("linear", False), ("rbf", False), ("poly", False), ("sigmoid", False),
                       ("cosine", False), ("tanimoto", False), ("rbf", True)]:
    Z, t = (np.vstack([X, X[:1] + 1e4]), np.append(y, y[0])) if double else (X, y)
    gamma = 0.05
    model = OnlineSVC(kernel=kernel, gamma=gamma, coef0=0.5, C=0.5, tol=1e-4, random_state=0)
    if kernel != "sigmoid":
        model.set_params(epochs=6)
    model.fit(Z, t)
    wide = clone(model)
    wide.fit(sp.csr_array(np.hstack([X[:100] * (X[:100] > 1), np.zeros((100, 900))])), y[:100])
    if not double:
        model._engine.native.check(1e-4)
    results[f"{kernel} {double}"] = {
        "precision": model.stats_["precision"],
        "labels": model.predict(Z).tolist(),
        "decision": model.decision_function(Z).tolist(),
        "objective": np.ravel(model.dual_objective()).tolist(),
        "wide": np.ravel(wide.dual_objective()).tolist(),
    }
print(json.dumps(results))
"""


def run_with_cpu(name: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "MARGINWISE_CPU"}
    if name is not None:
        environment["MARGINWISE_CPU"] = name
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def by_instruction_set(seed: int) -> dict[str, dict[str, Any]]:
    results = {}
    for name in _core.cpu_choices():
        done = run_with_cpu(name, "-c", SCRIPT, str(seed))
        assert done.returncode == 0, f"MARGINWISE_CPU={name} failed:\n{done.stderr}"
        results[name] = json.loads(done.stdout)
    return results


@pytest.mark.slow
def test_every_instruction_set_is_the_one_asked_for(by_instruction_set: dict[str, Any]) -> None:
    assert "baseline" in by_instruction_set, "the code for any processor must always be there"
    assert {name: r["cpu"] for name, r in by_instruction_set.items()} == {
        name: name for name in by_instruction_set
    }


@pytest.mark.slow
def test_every_instruction_set_gives_the_same_model(by_instruction_set: dict[str, Any]) -> None:
    baseline = by_instruction_set["baseline"]
    assert baseline["rbf True"]["precision"] == "double", "the double path was not reached"
    for name, results in by_instruction_set.items():
        for case, expected in baseline.items():
            if case == "cpu":
                continue
            found = results[case]
            why = f"{case} on {name} against baseline"
            tolerance = 0.05 if case.startswith("sigmoid") else 1e-3  # sigmoid has no one optimum
            np.testing.assert_allclose(
                found["objective"], expected["objective"], rtol=tolerance, err_msg=why
            )
            np.testing.assert_allclose(found["wide"], expected["wide"], rtol=tolerance, err_msg=why)
            if case.startswith("sigmoid"):
                continue
            np.testing.assert_allclose(
                found["decision"], expected["decision"], atol=5e-3, err_msg=why
            )
            margins = np.sort(np.asarray(expected["decision"]), axis=1)
            clear = margins[:, -1] - margins[:, -2] > 1e-2
            same = np.asarray(found["labels"]) == np.asarray(expected["labels"])
            assert same[clear].all(), f"{why}: other predictions on clear rows"
            assert clear.mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sse9", "AVX2", "baseline,avx2"])
def test_an_unknown_instruction_set_is_refused_by_name(name: str) -> None:
    script = "from marginwise import OnlineSVC\nOnlineSVC().fit([[0.0], [1.0]], [0, 1])"
    done = run_with_cpu(name, "-c", script)
    assert done.returncode == 1, "an unknown MARGINWISE_CPU must be an ordinary Python error"
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ValueError"), message
    assert f"MARGINWISE_CPU is '{name}'" in message
    assert "baseline" in message, "the message should list what this processor offers"


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, ""])
def test_without_a_wish_the_best_instruction_set_is_taken(name: str | None) -> None:
    done = run_with_cpu(name, "-c", "from marginwise import _core; print(_core.cpu())")
    assert done.stdout.strip() == _core.cpu_choices()[-1]


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("size", [1e19, 1e25, 1e40, 1e150])
def test_a_row_too_far_to_be_told_how_far_is_far_from_all(size: float, multiclass: str) -> None:
    """Its squared distances overflow; RBF values are 0 nevertheless, and f is the bias."""
    X, y = make_blobs(60, centers=3, n_features=4, random_state=0)
    model = OnlineSVC(C=10, gamma=0.1, multiclass=multiclass, random_state=0).fit(X, y)
    far = np.array([[size, 0.0, 0.0, 0.0], [-size, size, -size, size]])
    np.testing.assert_array_equal(binary_values(model, far), np.tile(model.intercept_, (2, 1)))


@pytest.mark.parametrize("kernel", NATIVE)
def test_no_kernel_ignores_its_gamma(kernel: str) -> None:
    """A kernel whose formula has a gamma must be in WITH_GAMMA; otherwise it would be 1."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(40, 3)))
    y = (X[:, 0] > 0.7).astype(int)
    values = [kernel_values(kernel, X, X, gamma, 0.5, 2) for gamma in (0.2, 0.7)]
    models = [
        OnlineSVC(kernel=kernel, gamma=gamma, coef0=0.5, degree=2, random_state=0).fit(X, y)
        for gamma in (0.2, 0.7)
    ]
    used = not np.array_equal(*values)
    assert used is not np.array_equal(*(model.decision_function(X) for model in models))
    assert used is (kernel in WITH_GAMMA)
