"""The embedded broker's process: `python -m anonymizer.transport.embedded PORT`.

Started by `anonymizer.transport.local_brokers.running_embedded_broker`, and ends when the standard
input that it inherited ends: the operating system sees to that even if the parent is killed.
"""

import asyncio
import logging
import sys

from amqtt.broker import Broker


async def serve(port: int) -> None:
    """Run the broker on a port of 127.0.0.1 until standard input ends."""
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
    await asyncio.to_thread(sys.stdin.buffer.read)
    await broker.shutdown()


if __name__ == "__main__":
    # It logs topics, which hold device ids.
    logging.disable(logging.CRITICAL)
    asyncio.run(serve(int(sys.argv[1])))
