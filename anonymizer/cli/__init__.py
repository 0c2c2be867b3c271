"""The command line: words in, calls to `anonymizer.app`, words and exit codes out."""
