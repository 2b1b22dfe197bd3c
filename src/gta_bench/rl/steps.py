"""GTA-Atomic's dense reward: every action against the reference's step at its place."""

from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict.steps import step_reward
from gta_bench.records.atomic import AtomicTask
from gta_bench.rl.environment import Moment, Reward, Rewards


def step_rewards(similarity: SimilarityFunction) -> Rewards:
    """The reference's own actions are worth 1 together, an empty reply nothing."""

    async def reward(moment: Moment) -> Reward:
        assert isinstance(moment.task, AtomicTask), "GTA-Workflow has no reference steps"
        value = step_reward(moment.task, moment.position, moment.action, similarity=similarity)
        return Reward(value)

    return reward
