"""What can go wrong, cut by what the caller does about it.

AnonymizerError
├── SettingsError    bad configuration: exit 2 before connecting, name the file and key
├── InputError       a file that cannot be read as what it should be: exit 2, name it
├── TransportError   broker lost: back off, reconnect, lose nothing that was acknowledged
└── GuaranteeError   an output would break its promise: publish nothing of it

One bad *message* is not an error: it is a value with a reason
(`anonymizer.domain.outcomes`), counted and dropped. No message of any error here carries a
coordinate or a device's identity.
"""


class AnonymizerError(Exception):
    """Base of everything this package raises on purpose."""


class SettingsError(AnonymizerError):
    """The configuration cannot be used; the message is one line that names file and key."""


class InputError(AnonymizerError):
    """An input file or source cannot be used; the message is one line that names it."""


class TransportError(AnonymizerError):
    """The broker refused, vanished or did not answer in time."""


class GuaranteeError(AnonymizerError):
    """An output would break its promise; nothing of it may be published."""
