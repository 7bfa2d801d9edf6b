import atexit

import training

atexit.register(lambda: print("exit handler", flush=True))
training.train()
raise KeyboardInterrupt
