"""GTA-Workflow, with real tools and gta-bench's judge: opencompass gta_workflow.py -w out."""

from gta_bench_opencompass import GTAInferencer, GTAWorkflowDataset, GTAWorkflowEvaluator
from opencompass.models import OpenAISDK
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.openicl.icl_retriever import ZeroRetriever

data = "data/gta_workflow"
# LMDeploy, vLLM, llama.cpp or any other server of the chat protocol.
server, served, key = "http://127.0.0.1:8000/v1", "my-model", "none"
# `gta tools serve` (its token in GTA_TOOLS_TOKEN), or agentlego+http://… for upstream's server.
tools = "http://127.0.0.1:16182"
# `gta` in its own environment, and the model that judges.
gta, judge = "gta", "openai/gpt-5.2"
files = "gta_files"

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
        abbr="gta_workflow",
        type=GTAWorkflowDataset,
        path=data,
        reader_cfg=dict(input_columns=["request"], output_column="task"),
        infer_cfg=dict(
            prompt_template=dict(type=PromptTemplate, template="{request}"),
            retriever=dict(type=ZeroRetriever),
            inferencer=dict(type=GTAInferencer, infer_mode="every", tools=tools, files=files),
        ),
        eval_cfg=dict(evaluator=dict(type=GTAWorkflowEvaluator, gta=gta, judge=judge, data=data)),
    )
]
