from datetime import UTC, datetime

from gta_bench.records.digests import TaskDigests
from gta_bench.records.pilot import LeafTrial, Pilot


def test_a_pilot_notices_that_its_trials_were_edited() -> None:
    made = Pilot(
        created=datetime(2026, 11, 17, tzinfo=UTC),
        task=TaskDigests(request="0" * 32),
        readers={},
        trials={"gold/a": {"sums": LeafTrial(by="check", scores=(0.0, None))}},
    )
    written = made.model_copy(update={"rows": made.compute_rows()})
    read = Pilot.model_validate_json(written.model_dump_json())
    assert read == written and read.rows == read.compute_rows()
    edited = written.model_dump_json().replace('"scores":[0.0', '"scores":[10.0')
    read = Pilot.model_validate_json(edited)
    assert read.rows != read.compute_rows()
