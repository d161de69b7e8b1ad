"""Options that no cluster engine supports."""

from gbmrank.api.metrics import any_preferences
from gbmrank.boosters.plan import Native, Plan
from gbmrank.boosters.settings import is_on, truncation_obstacle
from gbmrank.boosters.supported import booster_named
from gbmrank.errors import ConfigError, WeightError
from gbmrank.objectives import held_preferences


def check_for_cluster(plan: Plan, cluster: str, weighted: bool) -> None:
    """Raise ConfigError for options that need all rows on one machine, before any is read."""
    target, booster = plan.objective, booster_named(plan.backend)
    known = booster.parameters
    given = known.by_main_names(plan.params)
    if is_on(given, "bagging_by_query"):
        raise ConfigError(
            "bagging_by_query is done by gbmrank on one machine only, and LightGBM trains a wrong "
            "model with it; leave it out"
        )
    if given.get("folds") is not None:
        raise ConfigError(
            f"folds= is not supported on {cluster}, where the rows of a fold lie on several "
            "machines; give a validation set, or train GBMRanker on one machine"
        )
    if any_preferences(plan.metric) or (
        not isinstance(target, Native) and held_preferences(target.template)
    ):
        raise ConfigError(
            f"preferences are not supported on {cluster}, where rows lie on several machines; give "
            "labels, or train on one machine"
        )
    if isinstance(target, Native) and weighted and not booster.weights_on_cluster:
        raise WeightError(
            f"{booster.title} on {cluster} does not support weights with queries, so {target} "
            "cannot have them; use an objective of gbmrank"
        )
    if (obstacle := truncation_obstacle(given)) is not None:
        raise ConfigError(
            f"a model with {obstacle} cannot be truncated after a round; train on one machine"
        )
    for name in known.of_data_set:
        if name in given:
            raise ConfigError(f"{name}= is for one machine: use GBMRanker, or leave it out")
