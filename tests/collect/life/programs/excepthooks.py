import sys
import threading

import training

sys.excepthook = lambda kind, error, trace: print("mine", kind.__name__, trace.tb_lineno, trace.tb_next)
threading.excepthook = lambda args: print("thread's", args.exc_type.__name__)
training.train()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
quiet = threading.Thread(target=lambda: sys.exit(3))
quiet.start()
quiet.join()
raise KeyError("x")
