"""Settings: the numbers a user may change, with their symbols in the paper and their reasons."""

from clusterea.config.fusion import FusionConfig
from clusterea.config.matching import MatchingConfig
from clusterea.config.names import NAMES, NamesConfig
from clusterea.config.preset import PRESETS, SECTIONS, Config, EncoderConfig, config_with, preset
from clusterea.config.propagation import LABEL_PROPAGATION, PropagationConfig
from clusterea.config.sampling import SamplingConfig, with_reverse
from clusterea.config.self_training import SelfTrainingConfig
from clusterea.config.settings import with_settings, with_stage_settings
from clusterea.config.training import Activation, TrainingConfig, training_config

__all__ = [
    "LABEL_PROPAGATION",
    "NAMES",
    "PRESETS",
    "SECTIONS",
    "Activation",
    "Config",
    "EncoderConfig",
    "FusionConfig",
    "MatchingConfig",
    "NamesConfig",
    "PropagationConfig",
    "SamplingConfig",
    "SelfTrainingConfig",
    "TrainingConfig",
    "config_with",
    "preset",
    "training_config",
    "with_reverse",
    "with_settings",
    "with_stage_settings",
]
