"""GTA for OpenCompass: datasets, an inferencer and evaluators on gta-bench's records and metrics.

Importing this registers them; a config imports the classes from here.
"""

from gta_bench_opencompass.datasets import GTAAtomicDataset, GTAWorkflowDataset
from gta_bench_opencompass.evaluators import (
    GTAEndToEndEvaluator,
    GTAStepEvaluator,
    GTAWorkflowEvaluator,
)
from gta_bench_opencompass.inferencer import GTAInferencer

__all__ = [
    "GTAAtomicDataset",
    "GTAEndToEndEvaluator",
    "GTAInferencer",
    "GTAStepEvaluator",
    "GTAWorkflowDataset",
    "GTAWorkflowEvaluator",
]
