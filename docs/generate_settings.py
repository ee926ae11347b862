"""The page `docs/settings.md`, made from the config classes, their comments and the presets.

.venv/bin/python docs/generate_settings.py      (or `make docs`)
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from clusterea.config import (
    PRESETS,
    SECTIONS,
    FusionConfig,
    MatchingConfig,
    NamesConfig,
    PropagationConfig,
    SamplingConfig,
    SelfTrainingConfig,
    TrainingConfig,
    preset,
)

PAGE = Path(__file__).with_name("settings.md")
CONFIGS: dict[str, Any] = {
    "training": TrainingConfig,
    "propagation": PropagationConfig,
    "names": NamesConfig,
    "sampling": SamplingConfig,
    "fusion": FusionConfig,
    "self_training": SelfTrainingConfig,
    "matching": MatchingConfig,
}
# A comment that names a symbol of the paper begins with it: `# K_r: cells of a row …`.
SYMBOL = re.compile(r"^(?P<symbol>K_[srn]|K|N_[pn]|[FDλγ])(?=[\s:;,]|$)[:;,]?\s*")
SIZES = (50_000, 500_000, 5_000_000)  # of the larger graph: one of each row of a preset's `sizes`
# What a comment beside its field takes for granted; the comment follows it.
WORDS = {
    "training.model": "the encoder; choose it with `--model`, which brings its own recipe",
    "training.epochs": "passes over the seeds",
    "training.seeds_per_step": "seeds compared in one step",
    "training.negatives_per_step": "entities that the seeds are compared with",
    "training.loss": "normalized hard sample mining (appendix A of the paper), or a margin",
    "training.sharpness": "how much the hardest negatives count",
    "training.margin": "by how much a seed should be nearer than a negative",
    "training.optimizer": "with a fan-out only adam, which updates just the rows a step reads",
    "training.learning_rate": "of the optimizer",
    "training.seed": "of everything that training draws; `--seed` sets that of every stage",
    "propagation.seed": "of the labels and the projections",
    "names.seed": "of the random projection",
    "sampling.num_batches": "mini-batches of each sampler",
    "sampling.seed": "of everything that samplers draw",
    "fusion.sinkhorn_rounds": "rounds of Sinkhorn, in each mini-batch or on all candidates",
    "matching.method": "see [matching](matching.md)",
}
HEAD = """\
# Settings

*Generated from the config classes by `docs/generate_settings.py`. Change them, not this page.*

A setting is a field of a config class. A preset gives values to all of them, and
`--set STAGE.FIELD=VALUE` changes any:

```text
clusterea align DATA --out RUN --preset paper --set training.epochs=10 --set sampling.num_batches=8
clusterea train DATA --out RUN --set epochs=10          # one stage: its name may be left out
```

In Python: `clusterea.align(task, preset="paper", settings={"training.epochs": 10})`. `none` turns a
limit off where the type allows it. A wrong name is answered with the nearest names. The settings
of a run are kept in its `run.json`.

*Symbol* is the paper's, where it has one. Change a setting and run the same command again: only the
stages that depend on it are computed anew.
"""
AFTER_TRAINING = """\
Each model has its own values beside these defaults (`presets/training.toml`).
"""
PRESETS_HEAD = """\
## Presets

What differs between them. Where a cell has several values, they are for up to 50,000 entities of
the larger graph, up to 500,000, and more; everything else is as above. `paper` has every number
that the paper gives (appendix D); what the paper does not have, such as `outside`, is as above.
`default` is the most accurate, as measured. `fast` is for a first look.
"""


def comments(config: type) -> dict[str, str]:
    """What stands behind each field in the source of a config class."""
    found = re.findall(
        r"^    (\w+): [^=\n]+ = [^#\n]+?(?:  # (.*))?$", inspect.getsource(config), re.M
    )
    return dict(found)


def rows(stage: str) -> list[str]:
    """A row of the stage's table for each setting.

    Raises:
        ValueError: A setting has neither a comment nor an entry in `WORDS`.
    """
    config, lines = CONFIGS[stage], []
    said, types = comments(config), get_type_hints(config)
    for field in fields(config):
        comment = said.get(field.name, "")
        match = SYMBOL.match(comment)
        words = WORDS.get(f"{stage}.{field.name}", "")
        what = "; ".join(part for part in (words, comment[match.end() if match else 0 :]) if part)
        if not what:
            raise ValueError(f"{stage}.{field.name} needs a comment that says what it is.")
        cells = [
            f"`{field.name}`",
            f"*{match['symbol']}*" if match else "",
            kind(types[field.name]),
            f"`{shown(field.default)}`",
            what,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def kind(annotation: Any) -> str:
    """A type as a reader of the page wants it: choices spelled out."""
    options = get_args(annotation)
    if options and all(isinstance(option, str) for option in options):
        return ", ".join(f"`{option}`" for option in options)
    if type(None) in options:
        (other,) = (option for option in options if option is not type(None))
        return f"{other.__name__} or none"
    if Ellipsis in options:
        return "names"
    return str(annotation.__name__)


def shown(value: Any) -> str:
    """A value as it would be written on the command line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def preset_rows() -> list[str]:
    """Settings that differ between the presets or the sizes, a column for each preset."""
    configs = {name: [preset(name, size) for size in SIZES] for name in PRESETS}
    models = [", ".join(sized[0].models) for sized in configs.values()]
    samplers = [", ".join(sized[0].samplers) or "none" for sized in configs.values()]
    lines = [
        f"| `--{name}` | " + " | ".join(cells) + " |"
        for name, cells in (("model", models), ("samplers", samplers))
    ]
    for stage in SECTIONS:
        for field in fields(CONFIGS[stage]):
            cells = [
                " / ".join(
                    dict.fromkeys(shown(getattr(getattr(c, stage), field.name)) for c in sized)
                )
                for sized in configs.values()
            ]
            if len(set(cells)) > 1 or "/" in cells[0]:
                lines.append(f"| `{stage}.{field.name}` | " + " | ".join(cells) + " |")
    return lines


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for stage in SECTIONS:
        table = "\n".join(rows(stage))
        parts.append(
            f"## {stage.capitalize().replace('_', '-')}\n\n"
            f"| setting (`{stage}.…`) | symbol | type | default | what it is |\n"
            f"|---|---|---|---|---|\n{table}\n"
        )
    parts.insert(2, AFTER_TRAINING)
    names = " | ".join(f"`{name}`" for name in PRESETS)
    table = "\n".join(preset_rows())
    parts.append(f"{PRESETS_HEAD}\n| setting | {names} |\n|---|---|---|---|\n{table}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
