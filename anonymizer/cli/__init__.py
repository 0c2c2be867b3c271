"""Command line: options in, calls to `anonymizer.app`, texts and exit codes out."""
