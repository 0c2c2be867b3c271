"""`python -m anonymizer`, and the console script `anonymizer`."""

import signal
import sys

if sys.argv[1:2] == ["serve"]:
    # It reloads settings at this signal, which waits until there is something to reload.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
try:  # what is imported takes a third of a second to load
    from anonymizer.cli.main import main
except KeyboardInterrupt:
    sys.exit(130)  # as in main

if __name__ == "__main__":
    main()
