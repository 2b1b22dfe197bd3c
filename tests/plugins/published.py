"""OpenCompass 0.5.4 as far as the plugin touches it: the same names, parameters and calls.

The real package is met in tests/measure/test_opencompass.py.
"""

from collections.abc import Callable
from typing import Any


class Registry:
    def register_module(self) -> Callable[[type], type]:
        return lambda cls: cls


class BaseDataset:
    pass


class BaseEvaluator:
    def __init__(self, pred_postprocessor: Any = None) -> None:
        self.pred_postprocessor = pred_postprocessor


class BaseInferencer:
    def __init__(
        self,
        model: Any,
        max_seq_len: int | None = None,
        batch_size: int | None = 1,
        output_json_filepath: str = "./icl_inference_output",
        output_json_filename: str = "predictions",
        **kwargs: Any,
    ) -> None:
        self.model = model
        self.output_json_filepath = output_json_filepath
        self.output_json_filename = output_json_filename


class Rows:
    """`datasets.Dataset`, of which the plugin calls `from_list`."""

    @classmethod
    def from_list(cls, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return rows


MODULES: dict[str, dict[str, Any]] = {
    "datasets": {"Dataset": Rows},
    "opencompass": {},
    "opencompass.datasets": {},
    "opencompass.datasets.base": {"BaseDataset": BaseDataset},
    "opencompass.registry": {
        name: Registry() for name in ("ICL_EVALUATORS", "ICL_INFERENCERS", "LOAD_DATASET")
    },
    "opencompass.openicl": {},
    "opencompass.openicl.icl_evaluator": {"BaseEvaluator": BaseEvaluator},
    "opencompass.openicl.icl_inferencer": {},
    "opencompass.openicl.icl_inferencer.icl_base_inferencer": {"BaseInferencer": BaseInferencer},
    "opencompass.utils": {},
    "opencompass.utils.prompt": {"PromptList": list},
}
