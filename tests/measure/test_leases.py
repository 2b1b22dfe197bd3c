"""64 workers and 10,000 log-normal units in virtual time: leases beside static shards."""

from statistics import fmean

import pytest

from tests.running.virtual import log_normal, static_makespan, work_off

pytestmark = pytest.mark.measure
WORKERS, UNITS, SEEDS = 64, 10_000, range(20)
# Where nothing is known and sigma is 1.2, a unit of an hour may begin last.
MOST = {0.0: {0.6: 1.10, 0.9: 1.10, 1.2: 1.5}, 0.5: dict.fromkeys((0.6, 0.9, 1.2), 1.10)}


@pytest.mark.parametrize("known", MOST)
@pytest.mark.parametrize("sigma", [0.6, 0.9, 1.2])
def test_the_last_worker_ends_soon_after_the_ideal(sigma: float, known: float) -> None:
    ours, static, leases = [], [], []
    for seed in SEEDS:
        work = log_normal(UNITS, sigma, known=known, seed=seed)
        ideal = work.ideal(WORKERS)
        found = work_off(work, WORKERS)
        ours.append(found.makespan / ideal)
        leases.append(found.leases)
        static.append(static_makespan(work, WORKERS) / ideal)
    print(
        f"sigma {sigma}, known {known}: leases {fmean(ours):.3f} (worst {max(ours):.3f}), "
        f"static {fmean(static):.3f} (worst {max(static):.3f}), {fmean(leases):.0f} leases"
    )
    assert fmean(ours) <= MOST[known][sigma]
    assert fmean(ours) < fmean(static)
