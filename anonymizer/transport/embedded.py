"""The process of the embedded broker: `python -m anonymizer.transport.embedded PORT`.

`anonymizer.transport.local_brokers.running_embedded_broker` starts it, and ends it with SIGTERM.
"""

import asyncio
import logging
import sys

from amqtt.broker import Broker


async def serve(port: int) -> None:
    """Run the broker on a port of 127.0.0.1 until it is ended."""
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
            "plugins": {
                "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}
            },
        }
    )
    await broker.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    # The broker logs topics, which contain device ids.
    logging.disable(logging.CRITICAL)
    asyncio.run(serve(int(sys.argv[1])))
