"""Settings: every number's one home, with its symbol in the paper and its reason."""

from clusterea.config.fusion import FusionConfig
from clusterea.config.matching import MatchingConfig
from clusterea.config.preset import PRESETS, STAGES, Config, config_with, preset
from clusterea.config.sampling import SamplingConfig
from clusterea.config.settings import with_settings, with_stage_settings
from clusterea.config.training import Activation, TrainingConfig, training_config

__all__ = [
    "PRESETS",
    "STAGES",
    "Activation",
    "Config",
    "FusionConfig",
    "MatchingConfig",
    "SamplingConfig",
    "TrainingConfig",
    "config_with",
    "preset",
    "training_config",
    "with_settings",
    "with_stage_settings",
]
