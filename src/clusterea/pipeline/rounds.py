"""`Rounds`: the passes of a run, as far as config and task tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clusterea.config import Config, EncoderConfig, PropagationConfig, TrainingConfig
from clusterea.types import AlignmentTask


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over encoders, samplers and fusion."""

    round: int  # of self-training; 0: the first pass
    lessons: int  # how often each encoder runs
    encoders: tuple[tuple[int, EncoderConfig], ...]  # the number and the settings of each
    has_all: bool  # whether it is one of the last, which have all encoders


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often encoders run, and which take part in each round."""

    config: Config
    has_few: bool  # seeds

    @classmethod
    def of(cls, task: AlignmentTask, config: Config) -> Rounds:
        few = config.self_training.are_few(len(task.all_seeds), task.num_entities)
        return cls(config, few)

    @property
    def goes_on(self) -> bool:
        """Whether rounds of label propagation go on while they gain: where seeds are few."""
        return self.config.self_training.rounds > 0 and self.has_few and bool(self._encoders)

    @property
    def ahead(self) -> int | None:
        """How many rounds there will be, as known before the first pass; None: not known."""
        if self.goes_on:
            return None
        has_rounds = self.config.self_training.rounds > 0 and self.config.has_trained
        return self.trained if has_rounds else 0

    @property
    def trained(self) -> int:
        """The number of last rounds, which have all encoders; the first pass counts too."""
        config = self.config.self_training
        return max(1, min(config.trained_rounds if self.config.has_trained else 1, config.rounds))

    @property
    def most(self) -> int:
        """The most rounds after the first pass."""
        return self.config.self_training.rounds if self.ahead is None else self.ahead

    def encoders(
        self, number: int, *, has_all: bool, is_warm: bool = False
    ) -> list[tuple[int, EncoderConfig]]:
        """The encoders of round `number`, by their numbers in the config, with their settings.

        Unless the round has all, only label propagation: training is slow, and early pairs teach
        little. Without label propagation, every pass trains. A warm restart never trains.
        """
        is_quick = [isinstance(each, PropagationConfig) for each in self._encoders]
        return [
            (index, self._in_round(each, number))
            for index, each in enumerate(self._encoders)
            if has_all or is_quick[index] or not (any(is_quick) or is_warm)
        ]

    def passes(self) -> list[Pass]:
        """All passes, if rounds go on as long as they may."""
        folds, most = self.config.self_training.folds, self.most
        found = []
        for number in range(most + 1):
            has_all = most - number < self.trained
            encoders = tuple(self.encoders(number, has_all=has_all))
            found.append(Pass(number, folds if number else 1, encoders, has_all))
        return found

    def compared(self) -> list[EncoderConfig]:
        """The encoders whose vectors the last fusion compares: those of the last two passes.

        The pass before the last counts only if it has all encoders.
        """
        *others, last = self.passes()
        before = [each for each in others[-1:] if each.has_all]
        return encodings([*before, last])

    @property
    def _encoders(self) -> tuple[EncoderConfig, ...]:
        return self.config.encoders()

    def _in_round(self, encoder: EncoderConfig, number: int) -> EncoderConfig:
        """The settings of an encoder in a round; round 0 is the first pass."""
        rounds = self.config.self_training
        if number and rounds.epochs and isinstance(encoder, TrainingConfig):
            return replace(encoder, epochs=rounds.epochs)
        if self.goes_on and rounds.features and isinstance(encoder, PropagationConfig):
            return replace(encoder, features=rounds.features)
        return encoder


def encodings(passes: Sequence[Pass]) -> list[EncoderConfig]:
    """The settings of each embedding that these passes make."""
    return [encoder for each in passes for _, encoder in each.encoders for _ in range(each.lessons)]


def stage_label(stage: str, round_number: int, fit: int) -> str:
    """The name of a stage in a round and fit, as an observer gets it."""
    of_fit = f", fit {fit + 1}" if fit else ""
    return f"{stage}, round {round_number}{of_fit}" if round_number else f"{stage}{of_fit}"
