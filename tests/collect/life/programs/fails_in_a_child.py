import multiprocessing
import os
import sys
import time


def work(fails):
    import training

    training.train()
    if fails:
        raise ValueError("in a child")
    print("waits", flush=True)
    open("waits", "w").close()
    time.sleep(60)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    waiting, failing = (context.Process(target=work, args=(fails,)) for fails in (False, True))
    waiting.start()
    failing.start()
    failing.join()
    while not os.path.exists("waits"):
        time.sleep(0.01)
    waiting.terminate()
    waiting.join()
    print(failing.exitcode, waiting.exitcode)
    sys.exit(failing.exitcode)
