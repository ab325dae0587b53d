"""What several test processes make together is made by one of them, while the others wait."""

import contextlib
import fcntl


@contextlib.contextmanager
def file_lock(path):
    """Held by one process at a time. The system lets it go when its holder ends, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
