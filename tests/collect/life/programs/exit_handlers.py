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
print(signal.getsignal(signal.SIGINT), sum("syncscope" in type(finder).__module__ for finder in sys.meta_path))
