import multiprocessing
import os
import signal
import threading

import training

training.train(6)
child = os.fork()
if child == 0:
    print("terminated by default:", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
    os._exit(0)
os.waitpid(child, 0)


def fork_from_a_thread() -> None:
    child = os.fork()
    if child == 0:
        print("from a thread, too:", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
        os._exit(0)
    os.waitpid(child, 0)


thread = threading.Thread(target=fork_from_a_thread)
thread.start()
thread.join()
with multiprocessing.get_context("fork").Pool(4) as pool:  # its end terminates its workers
    print(pool.map(abs, range(-8, 0)), flush=True)
training.train(16)
