import atexit
import signal
import sys
import threading
import time

import training


def late():
    time.sleep(0.3)
    print("thread ended", flush=True)


atexit.register(lambda: print("bye", __name__, flush=True))
training.train()
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(sorted(thread.daemon for thread in threading.enumerate()))
# What waits for the import of torch is gone; what waits for that of its compiler may stay, as docs/promises.md says.
print(signal.getsignal(signal.SIGINT), sum("torch" in getattr(finder, "_names", ()) for finder in sys.meta_path))
