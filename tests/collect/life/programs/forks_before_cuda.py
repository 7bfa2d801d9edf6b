import multiprocessing
import os
import sys

import torch


def work():
    import training

    training.train()
    print("trained", flush=True)


print(torch.__name__, flush=True)
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
child = os.fork()
if child == 0:
    work()
    sys.exit(3)
print(process.exitcode, os.waitpid(child, 0)[1] >> 8, flush=True)
work()
