"""scikit-learn's own tests of SVC, with ExactSVC in its place."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sklearn
import sklearn.svm
from sklearn.utils.fixes import parse_version

from marginwise import ExactSVC

if parse_version(sklearn.__version__) < parse_version("1.9"):
    pytest.skip("the exceptions are those of scikit-learn 1.9's tests", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # scikit-learn's tests warn on purpose


class InPlaceOfSVC(ExactSVC):
    """ExactSVC with the parameters of SVC; those that it does not have are ignored."""

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        window: int | None = None,
        evict: Any = "lightest",
        record: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            cache_size=cache_size,
            class_weight=class_weight,
            verbose=verbose,
            window=window,
            evict=evict,
            record=record,
            n_jobs=n_jobs,
        )
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    @property
    def _gamma(self) -> float:  # the private name of gamma_ in SVC
        return self.gamma_


InPlaceOfSVC.__name__ = "SVC"


def adapted_tests() -> dict[str, Any]:
    """Return the tests of scikit-learn's test_svm.py, in which `svm.SVC` is our class."""
    spec = importlib.util.find_spec("sklearn.svm.tests.test_svm")
    if spec is None or spec.origin is None:
        return {}
    source = Path(spec.origin).read_text(encoding="utf-8")
    source = source.replace("@pytest.mark.thread_unsafe\n", "")  # a mark of scikit-learn's own
    svm: Any = types.SimpleNamespace(**{**vars(sklearn.svm), "SVC": InPlaceOfSVC})
    module: dict[str, Any] = {"__name__": __name__}
    with mock.patch.object(sklearn, "svm", svm):
        exec(compile(source, spec.origin, "exec"), module)
    return {name: test for name, test in module.items() if name.startswith("test_")}


ROUNDING = "asks for equal bits; ours differ by 1e-16"
WORDING = "raises ValueError as SVC does, with a message of its own"
NO_NEGATIVE = "refuses negative weights, which SVC takes for rows to be left out"
NO_PROBABILITIES = "has `calibration` in place of `probability`"
ONE_VS_REST = "learns one problem per class, where SVC learns one per pair of classes"
ONE_NUMBER = "n_iter_ is one number over all binary problems"

EXCEPTIONS = {
    "test_libsvm_parameters": ROUNDING,
    "test_precomputed": ROUNDING,
    "test_tweak_params": ROUNDING,
    "test_probability": NO_PROBABILITIES,
    "test_hasattr_predict_proba": NO_PROBABILITIES,
    "test_probability_raises_futurewarning[True-SVC-SVC]": NO_PROBABILITIES,
    "test_probability_raises_futurewarning[False-SVC-SVC]": NO_PROBABILITIES,
    "test_svc_nusvc_probA_probB_deprecated[SVC]": NO_PROBABILITIES,
    "test_decision_function_shape[SVC]": ONE_VS_REST,
    "test_svc_invalid_break_ties_param[SVC]": ONE_VS_REST,
    "test_svc_ovr_tie_breaking[SVC]": ONE_VS_REST,
    "test_n_iter_libsvm[2-SVC-ndarray]": ONE_NUMBER,
    "test_n_iter_libsvm[3-SVC-ndarray]": ONE_NUMBER,
    "test_n_iter_libsvm[4-SVC-ndarray]": ONE_NUMBER,
    "test_negative_sample_weights_mask_all_samples[weights-are-zero-SVC]": WORDING,
    "test_negative_sample_weights_mask_all_samples[weights-are-negative-SVC]": WORDING,
    "test_negative_weights_svc_leave_just_one_label[mask-label-1-SVC]": WORDING,
    "test_negative_weights_svc_leave_just_one_label[mask-label-2-SVC]": WORDING,
    "test_svc_nonfinite_params": WORDING,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": NO_NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": NO_NEGATIVE,
    "test_bad_input[lil_matrix]": "predicts for sparse rows also if it was fitted with dense ones",
    "test_bad_input[lil_array]": "predicts for sparse rows also if it was fitted with dense ones",
    "test_libsvm_convergence_warnings": "has no max_iter: it always reaches the solution",
    "test_svc_raises_error_internal_representation": "alters SVC's private attribute _n_support",
    "test_custom_kernel_not_array_input[SVC]": "its kernel function requires square blocks",
}

globals().update(adapted_tests())


@pytest.fixture
def global_random_seed() -> int:
    return 42


@pytest.fixture(autouse=True)
def expect_failure(request: pytest.FixtureRequest) -> None:
    reason = EXCEPTIONS.get(request.node.name)
    if reason is not None:
        strict = reason != ROUNDING  # which may differ between platforms
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=strict))


def test_exceptions_are_few(request: pytest.FixtureRequest) -> None:
    """Every exception is a test of scikit-learn's, and there are not many."""
    names = {item.name for item in request.session.items if item.module is request.module}
    if len(names) > 100:  # not a selection of them
        assert EXCEPTIONS.keys() <= names
    assert len(EXCEPTIONS) < 31
