"""GTA-Atomic end to end, with real tools: opencompass gta_end_to_end.py -w out."""

from gta_bench_opencompass import GTAAtomicDataset, GTAEndToEndEvaluator, GTAInferencer
from opencompass.models import OpenAISDK
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever

data = "data/gta_atomic"
# LMDeploy, vLLM, llama.cpp or any other server of the chat protocol.
server, served, key = "http://127.0.0.1:8000/v1", "my-model", "none"
# `gta tools serve` (its token in GTA_TOOLS_TOKEN), or agentlego+http://… for upstream's server.
tools = "http://127.0.0.1:16182"

models = [
    dict(
        abbr=served,
        type=OpenAISDK,
        path=served,
        key=key,
        openai_api_base=server,
        tokenizer_path="gpt-4",
        query_per_second=8,
        max_seq_len=32768,
        max_out_len=512,
        temperature=0.0,
        batch_size=1,
    )
]
datasets = [
    dict(
        abbr="gta_end_to_end",
        type=GTAAtomicDataset,
        path=data,
        reader_cfg=dict(input_columns=["request"], output_column="task"),
        infer_cfg=dict(
            prompt_template=dict(type=PromptTemplate, template="{request}"),
            retriever=dict(type=ZeroRetriever),
            inferencer=dict(type=GTAInferencer, infer_mode="every", tools=tools),
        ),
        eval_cfg=dict(evaluator=dict(type=GTAEndToEndEvaluator, similarity="all-mpnet-base-v2")),
    )
]
