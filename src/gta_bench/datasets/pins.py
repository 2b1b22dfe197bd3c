"""What is known of the published files."""

from collections.abc import Mapping

from gta_bench.records.run import DatasetName

# Files whose published content is known; everything else is "not pinned".
PINNED_FILES: Mapping[DatasetName, Mapping[str, str]] = {
    "atomic": {
        "dataset.json": "a6ee050d7ba99d9777a2005fac9654eb8c88f890989b54f89b5bc2134287998e",
        "toolmeta.json": "3cbc7a5cba6cf611a11ece09b26fe4954ae95a8058baff3642a80c7894a8fb22",
    },
    "workflow": {},
}

MAIN_FILE: Mapping[DatasetName, str] = {"atomic": "dataset.json", "workflow": "end.json"}
