"""Values that a shell completes for options that take one of a few names."""

from typing import get_args


def mode_names() -> list[str]:
    """Return the modes of regions."""
    from anonymizer.domain.region_modes import RegionMode

    return list(get_args(RegionMode))


def codec_names() -> list[str]:
    """Return the formats of payloads, with those of plugins."""
    from anonymizer import plugins
    from anonymizer.codecs import FORMATS
    from anonymizer.settings.inputs import ANY_JSON

    return sorted({*FORMATS, ANY_JSON, *plugins.plugin_names(plugins.CODECS)})


def method_names() -> list[str]:
    """Return the methods of all models of records."""
    from anonymizer.algorithms.models.registry import MODELS

    return list(dict.fromkeys(name for model in MODELS.values() for name in model.methods))


def model_names() -> list[str]:
    """Return the models of records."""
    from anonymizer.algorithms.models.registry import MODELS

    return list(MODELS)


def reader_names() -> list[str]:
    """Return the kinds of further readers of a broker."""
    from anonymizer.app.connect.broker_files import OWN, PUBLIC

    return [PUBLIC, OWN]
