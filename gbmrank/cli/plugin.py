"""``gbmrank plugin new NAME``: create a plugin project that installs and passes its tests."""

import argparse
import json
import keyword
import re
from pathlib import Path
from typing import Any

from gbmrank.boosters.supported import BACKENDS
from gbmrank.cli.screen import clean
from gbmrank.errors import ParameterError
from gbmrank.registry.catalogue import LOSSES, METRICS, OBJECTIVES, Registry
from gbmrank.registry.entry_points import project

_LOSS = '''"""A loss for gbmrank: one function of the margin by which the better item leads."""

from gbmrank.numerics import sigmoid, softplus

gbmrank_api = 1


def {name}(z: float, k: float = 2.0) -> tuple[float, float, float]:
    """log(1 + exp(k (1 - z))) / k; replace it with yours: value, first and second derivative."""
    s = sigmoid(k * (1.0 - z))
    return softplus(k * (1.0 - z)) / k, -s, k * s * (1.0 - s)
'''

_OBJECTIVE = '''"""An objective for gbmrank: one function of a query, compiled, run in threads."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.extend import (
    AbstractBound,
    AbstractObjective,
    FloatArray,
    HessianTrait,
    RankingData,
    bind_queries,
    gains,
)

gbmrank_api = 1


def one_query(labels: FloatArray, scores: FloatArray, grad: FloatArray, hess: FloatArray) -> float:
    """Add gradient and Hessian of one query to zeros, and return its loss."""
    total, level = labels.sum(), scores.max()
    if total <= 0.0 or len(scores) < 2:
        return 0.0
    mass = np.exp(scores - level).sum()
    value = 0.0
    for i in range(len(scores)):
        p = np.exp(scores[i] - level) / mass
        value += labels[i] / total * (level + np.log(mass) - scores[i])
        grad[i] += p - labels[i] / total
        hess[i] += p * (1.0 - p)
    return value


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(AbstractObjective):
    """Cross entropy of the gains and the softmax of the scores; replace it with yours."""

    name: ClassVar[str] = "{name}"
    formula: ClassVar[str] = "-sum_i G_i / sum G log softmax(s)_i"
    shift_invariant: ClassVar[bool] = True

    @property
    def hessian_trait(self) -> HessianTrait:
        """Exact, or constant on request."""
        return "constant" if self.hessian == "constant" else "exact"

    def bind(self, data: RankingData) -> AbstractBound:
        """Precompute everything that depends on the labels only."""
        return bind_queries(self, data, one_query, labels=gains(data.labels, "exp2"))
'''

_METRIC = '''"""A metric for gbmrank: utility of an item times discount of its rank."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from gbmrank.extend import AbstractPositional, FloatArray, RankingData, cut, gains

gbmrank_api = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(AbstractPositional):
    """Rank-biased precision with gains; replace it with yours."""

    persistence: float = 0.8
    k: int | None = None

    name: ClassVar[str] = "{name}"
    formula: ClassVar[str] = "(1 - p) sum_r p^(r - 1) G(item at rank r)"

    def utilities(self, data: RankingData) -> FloatArray:
        """Return the utility of each item."""
        return gains(data.labels, "exp2")

    def rank_discounts(self, n: int) -> FloatArray:
        """Return the discount of each rank."""
        return cut((1.0 - self.persistence) * self.persistence ** np.arange(n), self.k)
'''

_PYPROJECT = """[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
description = "The {kind} {name} for gbmrank"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["gbmrank>={gbmrank}"]

[project.optional-dependencies]
test = ["gbmrank[{boosters}]", "pytest>=8.2"]

[project.entry-points."gbmrank.{group}"]
{name} = "{module}:{attribute}"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""

_README = """# {distribution}

The {kind} `{name}` for [gbmrank](https://pypi.org/project/gbmrank/).

```python
import gbmrank

{use}
```

`pip install -e .[test]` and `pytest` run gbmrank's conformance kit.
"""

_TEST = '''"""The conformance kit of gbmrank."""

from gbmrank.testing import parametrize_checks


@parametrize_checks("{distribution}:{name}", kind="{kind}")
def test_contract(check):
    check()
'''

_CI = """name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.11"
      - run: pip install -e .[test]
      - run: pytest
"""


KINDS = {
    "loss": (_LOSS, "{name}", 'gbmrank.objective("comparison", loss="{name}")'),
    "objective": (_OBJECTIVE, "Objective", 'gbmrank.objective("{name}")'),
    "metric": (_METRIC, "Metric", 'gbmrank.metric("{name}@10")'),
}
"""Per kind: source of the module, object of its entry point, and example of use."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_REGISTRIES: dict[str, Registry[Any]] = {each.kind: each for each in (LOSSES, OBJECTIVES, METRICS)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("new",), help="new: write the files of a plugin")
    parser.add_argument("name", help="name of the distribution, such as gbmrank-tempered")
    parser.add_argument("--kind", choices=tuple(KINDS), default="loss", help="what it adds (loss)")
    parser.add_argument("--folder", default=".", help="where to create its folder (default: here)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Write the files and print the next steps."""
    from gbmrank import __version__

    own = given.name.replace("-", "_").removeprefix("gbmrank_")
    _check_name(given.name, own)
    _check_free(given.name, own, given.kind)
    target = Path(given.folder) / given.name
    if target.exists():
        raise ParameterError(f"{target} already exists; choose another name or --folder")
    written = []
    for path, text in files_of(given.name, given.kind, __version__).items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        written.append(str(file))
    if given.json:
        print(json.dumps({"schema": "gbmrank.plugin/1", "files": written}, indent=2))
        return 0
    module = given.name.replace("-", "_")
    lines = [
        f"wrote {len(written)} files to {target}",
        "next:",
        f"  pip install -e '{target}[test]'",
        f"  pytest {target}",
        f"  then put your {given.kind} into {target / module}.py",
    ]
    print(clean("\n".join(lines)))
    return 0


def files_of(distribution: str, kind: str, version: str) -> dict[str, str]:
    """Return the files of a plugin by path; ``version`` is the gbmrank it needs.

    >>> sorted(files_of("gbmrank-tempered", "loss", "0.1"))[-2:]
    ['pyproject.toml', 'tests/test_gbmrank_tempered.py']
    """
    module = distribution.replace("-", "_")
    source, attribute, use = KINDS[kind]
    name = module.removeprefix("gbmrank_")
    words = {
        "distribution": distribution,
        "module": module,
        "name": name,
        "kind": kind,
        "group": {"loss": "losses"}.get(kind, f"{kind}s"),
        "attribute": attribute.format(name=name),
        "use": use.format(name=name),
        "gbmrank": version,
        "boosters": ",".join(BACKENDS),
    }
    return {
        "pyproject.toml": _PYPROJECT.format(**words),
        f"{module}.py": source.format(**words),
        "README.md": _README.format(**words),
        f"tests/test_{module}.py": _TEST.format(**words),
        ".github/workflows/test.yml": _CI,
    }


def _check_name(name: str, own: str) -> None:
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"the name of a plugin must be lower-case letters, digits and '-', such as "
            f"gbmrank-tempered; got {name!r}"
        )
    if keyword.iskeyword(own) or not own[:1].isalpha():
        what = "is a Python keyword" if keyword.iskeyword(own) else "does not begin with a letter"
        raise ParameterError(f"{name!r} registers {own!r}, which {what}; choose another name")


def _check_free(name: str, own: str, kind: str) -> None:
    """Reject a name that gbmrank or another distribution already registers."""
    registry = _REGISTRIES[kind]
    if own not in registry:
        return
    owners = [entry.origin for entry in registry.entries.get(own, ())]
    others = [one for one in owners if project(one.distribution) != project(name)]
    if owners and not others:
        return  # the same plugin, written again
    raise ParameterError(
        f"the {kind} {own!r} already exists in {others[0] if others else 'gbmrank'}; choose "
        f"another name, such as gbmrank-my-{own.replace('_', '-')}"
    )
