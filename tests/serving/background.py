"""A server in a thread."""

import socket
import threading
from contextlib import contextmanager


@contextmanager
def in_background(server):
    """Run a server on this machine in a thread, to the end of the block; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
